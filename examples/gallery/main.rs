//! A gallery of reductions over pairs: pictures, timings, and one page that shows them.
//!
//! Run with `cargo run --release -p tilework --example gallery`; it leaves
//! `target/gallery/index.html` and the pictures beside it. Rooms: `pieces` (the five jobs), `dense`
//! (what the same would cost with the matrix stored), `draw` (PNG and SVG), `page` (HTML).

mod dense;
mod draw;
mod page;
mod pieces;

use std::path::PathBuf;
use std::time::Instant;

use tilework::{Error, Result};

use dense::Cost;

/// A picture, in the format that suits it.
enum Picture {
    /// Points and lines.
    Svg(String),
    /// Colours.
    Png(Vec<u8>),
}

/// What a job leaves.
struct Piece {
    /// The file's name, without its ending.
    name: &'static str,
    title: &'static str,
    /// What was done, in a sentence or two.
    story: String,
    /// The lines that matter, as a user would write them in Python.
    code: &'static str,
    picture: Picture,
    /// How many pairs were evaluated.
    pairs: f64,
    /// Seconds of all reductions.
    seconds: f64,
    /// The same with a stored matrix.
    dense: Cost,
}

/// Adds up the time of what it runs.
#[derive(Default)]
struct Watch(f64);

impl Watch {
    fn run<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let began = Instant::now();
        let result = work();
        self.0 += began.elapsed().as_secs_f64();
        result
    }
}

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()))
        .join("gallery");
    let failed = |error: std::io::Error| Error::io("gallery", error.kind(), error);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let mut shown = Vec::new();
    for job in pieces::ALL {
        let piece = job()?;
        println!(
            "{:<28} {:>7}  {:>9.2e} pairs a second; stored: {} and about {}",
            piece.title,
            page::seconds(piece.seconds),
            piece.pairs / piece.seconds,
            page::bytes(piece.dense.bytes),
            page::seconds(piece.dense.seconds)
        );
        let (ending, content) = match &piece.picture {
            Picture::Svg(text) => ("svg", text.as_bytes()),
            Picture::Png(bytes) => ("png", &bytes[..]),
        };
        let path = folder.join(format!("{}.{ending}", piece.name));
        std::fs::write(path, content).map_err(failed)?;
        shown.push(piece);
    }
    let page = folder.join("index.html");
    std::fs::write(&page, page::html(&shown)).map_err(failed)?;
    println!("the gallery is in {}", page.display());
    Ok(())
}
