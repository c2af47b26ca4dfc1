//! The tables of `docs/formulas.md` are what the rows say. Run with `TILEWORK_WRITE=1` to write them.

use std::fmt::Write;
use std::path::Path;

use tilework_formula::functions::{FUNCTIONS, Takes};
use tilework_formula::reduction::{REDUCTIONS, Slope, Weight};
use tilework_formula::{methods, names};
use tilework_ops::Id;

const HEAD: &str = "# Formulas: the tables

Made from the rows of the tables themselves by `crates/formula/tests/tables.rs`; do not edit.

In text, arguments are formulas unless they say otherwise: *n* is an integer, *[n]* a list of
integers, *v* a variable. Vectors of one component broadcast. As a method, the tensor takes the place
of the argument that is not named.
";

fn kind(takes: Takes, name: &str) -> String {
    match takes {
        Takes::Formula | Takes::Formulas => name.to_string(),
        Takes::Variable => format!("*v* {name}"),
        Takes::Integer | Takes::Count => format!("*n* {name}"),
        Takes::Counts => format!("*[n]* {name}"),
        Takes::MaybeFormula => format!("{name}?"),
        Takes::MaybeCounts => format!("*[n]* {name}?"),
    }
}

fn text() -> Result<String, std::fmt::Error> {
    let mut text = HEAD.to_string();
    let by = |function: &str| methods::all().iter().find(|method| method.function == function);
    let method = |function: &str| match by(function) {
        Some(method) => format!("`{}({})`", method.name, method.signature),
        None => String::new(),
    };
    writeln!(text, "\n## Functions\n\n| in text | method | meaning |\n|---|---|---|")?;
    for function in FUNCTIONS {
        let given = function.takes.iter().zip(function.arguments);
        let given: Vec<String> = given.map(|(takes, name)| kind(*takes, name)).collect();
        let (name, doc) = (function.name, function.doc.replace('|', "\\|"));
        writeln!(text, "| `{name}`({}) | {} | {doc} |", given.join(", "), method(name))?;
    }
    writeln!(
        text,
        "\n## Operations, number by number\n\n| in text | method | meaning |\n|---|---|---|"
    )?;
    for id in Id::ALL.into_iter().filter(|id| names::is_real(*id)) {
        let arguments = ["f", "f, g", "f, g, h"][id.row().arity - 1];
        let doc = id.row().doc.trim().replace('\n', " ").replace('|', "\\|");
        writeln!(text, "| `{}`({arguments}) | {} | {doc} |", names::of(id), method(names::of(id)))?;
    }
    writeln!(text, "\n## Reductions\n")?;
    writeln!(text, "Over i (axis 0) or over j (axis 1).\n")?;
    writeln!(text, "| name | takes | gives | meaning | gradient |\n|---|---|---|---|---|")?;
    for row in REDUCTIONS {
        let mut takes = Vec::new();
        if row.scalar {
            takes.push("a number");
        }
        if row.takes_k {
            takes.push("K");
        }
        match row.weight {
            Weight::None => {}
            Weight::Optional => takes.push("a weight if you like; or a vector, by components"),
            Weight::Required => takes.push("a weight"),
        }
        let gives = match (row.gives_values, row.gives_indices) {
            (true, true) => "values, indices",
            (true, false) => "values",
            _ => "indices",
        };
        let gradient = match row.slope {
            Slope::Zero => "zero",
            Slope::Selected => "through what was selected",
            _ => "yes",
        };
        let (name, takes) = (row.name, takes.join(", "));
        writeln!(text, "| `{name}` | {takes} | {gives} | {} | {gradient} |", row.doc)?;
    }
    Ok(text)
}

#[test]
fn the_tables_of_the_documentation_are_those_of_the_rows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formulas.md");
    let text = text().unwrap();
    if std::env::var_os("TILEWORK_WRITE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "docs/formulas.md is stale: run this test with TILEWORK_WRITE=1");
}
