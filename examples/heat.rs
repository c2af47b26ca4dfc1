//! The heat equation on a plate: a stencil written with views, updated in place.
//!
//! Run with `cargo run --release -p tilework --example heat`.

use tilework::{Array, DType, Result, s};

fn main() -> Result<()> {
    let (rows, columns) = (120, 240);
    let plate = Array::zeros(&[rows, columns], DType::Float32)?;
    // One edge is kept hot; a bar in the middle is kept at half the heat.
    plate.slice(&s![0])?.fill(1.0)?;
    let bar = plate.slice(&s![60..64, 60..180])?;
    let inside = plate.slice(&s![1..-1, 1..-1])?;
    let (north, south) = (plate.slice(&s![..-2, 1..-1])?, plate.slice(&s![2.., 1..-1])?);
    let (west, east) = (plate.slice(&s![1..-1, ..-2])?, plate.slice(&s![1..-1, 2..])?);
    for step in 0..=3000 {
        bar.fill(0.5)?;
        if step % 1000 == 0 {
            println!("after {step} steps, mean heat {:.4}", plate.mean(())?.item::<f64>()?);
            draw(&plate)?;
        }
        let neighbours = (&(&north + &south)? + &(&west + &east)?)?;
        inside.assign(&(&neighbours * 0.25)?)?;
    }
    Ok(())
}

/// One character for each block of the plate.
fn draw(plate: &Array) -> Result<()> {
    let blocks = plate.reshape(&[12, 10, 60, 4])?.mean([1, 3])?;
    let shades: Vec<char> = " .:-=+*#%@".chars().collect();
    for row in blocks.unstack(0)? {
        let line: String =
            row.iter::<f32>()?.map(|heat| shades[((heat * 9.99) as usize).min(9)]).collect();
        println!("  |{line}|");
    }
    Ok(())
}
