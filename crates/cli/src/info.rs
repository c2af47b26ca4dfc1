//! `tilework info`: devices, their properties, and what is missing.

use std::io::{Result, Write};

use tilework::Device;

/// Writes one paragraph per device.
pub(crate) fn run(out: &mut impl Write) -> Result<()> {
    writeln!(out, "tilework {}", env!("CARGO_PKG_VERSION"))?;
    for device in Device::all() {
        let default = if device == Device::current() { " (default)" } else { "" };
        writeln!(out, "\n{device}{default}")?;
        for (name, value) in device.properties() {
            writeln!(out, "  {name:<10} {value}")?;
        }
    }
    for (kind, why) in Device::unavailable() {
        writeln!(out, "\n{kind}: not available\n  {why}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_every_device_and_every_reason() {
        let mut text = Vec::new();
        super::run(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for device in tilework::Device::all() {
            assert!(text.contains(&format!("\n{device}")), "{text}");
        }
        for (_, why) in tilework::Device::unavailable() {
            assert!(text.contains(&why), "{text}");
        }
    }
}
