//! The how-to pages name files and identifiers; each must still be where the page says.

use std::path::Path;

const PAGES: [&str; 3] = ["add-an-operation", "add-a-reduction", "add-a-backend"];

/// What stands between single backquotes outside of code blocks, in order.
fn quoted(page: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut prose = Vec::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            prose.extend(line.split('`').skip(1).step_by(2));
        }
    }
    prose
}

/// The marks of rows are listed where the grammar is; a page that forgets one leads astray.
#[test]
fn the_page_of_operations_names_every_mark() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect(name);
    let (table, page) = (read("crates/ops/src/table.rs"), read("docs/add-an-operation.md"));
    let marks: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("//! - `")?.split('`').next()).collect();
    assert!(marks.len() >= 6, "{marks:?}");
    for mark in marks {
        assert!(page.contains(&format!("`{mark}`")), "the page says nothing of {mark}");
    }
}

#[test]
fn pages_name_what_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let makefile = std::fs::read_to_string(root.join("Makefile")).expect("Makefile");
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(format!("docs/{page}.md"))).expect(page);
        let mut places = 0;
        let mut before = "";
        for name in quoted(&text) {
            if let Some(target) = name.strip_prefix("make ") {
                assert!(makefile.contains(&format!("\n{target}:")), "{page}: {name}");
            } else if name.contains('/') && !name.contains(' ') {
                let path = root.join(name);
                assert!(path.exists(), "{page}: there is no {name}");
                // "`NAME` of `FILE`": the file must have the name.
                if text.contains(&format!("`{before}` of")) {
                    let file = std::fs::read_to_string(&path).expect(name);
                    assert!(file.contains(before), "{page}: {name} has no {before}");
                    places += 1;
                }
            }
            before = name;
        }
        assert!(places > 0 || page == "add-an-operation", "{page} names no places");
    }
}
