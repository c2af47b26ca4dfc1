//! The page: one HTML file that needs nothing beside it.

use std::fmt::Write;

use crate::{Picture, Piece};

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --paper: #f6f7f4; --card: #fff;
  --line: #dfe3e0; --mark: #b5371f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaee; --soft: #9aa4b2; --paper: #14171c;
  --card: #1c2128; --line: #2d343d; --mark: #ff8a66; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
h1 { font-size: 2.3rem; line-height: 1.15; margin: 0 0 .6rem; letter-spacing: -.02em; }
header p { max-width: 46rem; color: var(--soft); margin: 0 0 2.2rem; }
article { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); gap: 1.8rem;
  background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 1.4rem;
  margin-bottom: 1.6rem; }
article img { width: 100%; aspect-ratio: 1; border-radius: 8px; display: block;
  image-rendering: pixelated; background: #fcfcfa; }
h2 { margin: .1rem 0 .4rem; font-size: 1.35rem; }
article p { margin: 0 0 1rem; color: var(--soft); }
pre { background: var(--paper); border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem;
  overflow-x: auto; font: 13.5px/1.5 ui-monospace, monospace; margin: 0 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .35rem .4rem; border-top: 1px solid var(--line); }
th { font-weight: 500; color: var(--soft); } th:first-child, td:first-child { text-align: left; }
td.ours { font-weight: 650; color: var(--mark); }
footer { color: var(--soft); font-size: .9rem; max-width: 46rem; }
@media (max-width: 760px) { article { grid-template-columns: minmax(0, 1fr); } }
";

/// A count with its thousands parted.
pub(crate) fn counted(count: usize) -> String {
    let digits = count.to_string();
    let parts: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|three| std::str::from_utf8(three).unwrap_or_default())
        .collect();
    parts.join(",")
}

/// A large count as people say it.
fn large(count: f64) -> String {
    match count {
        c if c >= 1e9 => format!("{:.1} billion", c / 1e9),
        c => format!("{:.0} million", c / 1e6),
    }
}

/// A number of bytes as people say it.
pub(crate) fn bytes(count: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value < 10.0 {
        format!("{value:.1} {}", units[unit])
    } else {
        format!("{value:.0} {}", units[unit])
    }
}

/// A time as people say it.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        v if v < 0.1 => format!("{:.0} ms", v * 1e3),
        v if v < 10.0 => format!("{v:.2} s"),
        v => format!("{v:.0} s"),
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 4);
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0u32, |word, byte| (word << 8) | u32::from(*byte))
            << (8 * (3 - three.len()));
        for k in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * k)) as usize & 63];
            text.push(if k <= three.len() { letter as char } else { '=' });
        }
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The page of these pieces.
pub(crate) fn html(pieces: &[Piece]) -> String {
    let mut body = String::new();
    for piece in pieces {
        let source = match &piece.picture {
            Picture::Svg(text) => format!("data:image/svg+xml;base64,{}", base64(text.as_bytes())),
            Picture::Png(image) => format!("data:image/png;base64,{}", base64(image)),
        };
        // Writing to a string cannot fail.
        let _ = write!(
            body,
            "<article><img alt='{title}' src='{source}'><div><h2>{title}</h2><p>{story}</p>\
             <pre>{code}</pre><table><tr><th></th><th>time</th><th>memory</th></tr>\
             <tr><td>tilework</td><td class='ours'>{ours}</td><td class='ours'>the inputs</td></tr>\
             <tr><td>matrix stored</td><td>≈ {theirs}</td><td>{memory}</td></tr></table>\
             <p style='margin:.7rem 0 0'>{pairs} pairs, {rate} a second</p></div></article>",
            title = escaped(piece.title),
            story = escaped(&piece.story),
            code = escaped(piece.code),
            ours = seconds(piece.seconds),
            theirs = seconds(piece.dense.seconds),
            memory = bytes(piece.dense.bytes),
            pairs = large(piece.pairs),
            rate = large(piece.pairs / piece.seconds),
        );
    }
    let threads = tilework::num_threads();
    format!(
        "<!doctype html><html lang='en'><meta charset='utf-8'>\
         <meta name='viewport' content='width=device-width,initial-scale=1'>\
         <title>tilework: a gallery</title><style>{STYLE}</style><main><header>\
         <h1>Reductions over pairs, without the matrix</h1>\
         <p>Each picture comes from sums, minima or softmax means over all pairs of two clouds of \
         points. The matrix of pairs is never stored: a tile of it lives in registers for a moment. \
         Computed just now on {threads} threads of this machine. The lines of code are Python, after \
         <code>from tilework import Vi, Vj</code>.</p></header>{body}<footer>\
         “Matrix stored” is the same work as one writes it in NumPy, array at a time: distances by \
         broadcasting, then the function, then the reduction. Its memory is counted; its time was \
         measured on a block of rows with tilework’s own arrays and scaled to the whole, since the \
         whole would often not fit.</footer></main></html>"
    )
}
