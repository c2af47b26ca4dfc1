//! Pictures without a library: PNG for colours, SVG for points and lines.

use std::fmt::Write;

/// Red, green, blue.
pub(crate) type Colour = [u8; 3];

/// From dark blue over violet and orange to pale yellow, for 0 to 1.
pub(crate) fn heat(t: f64) -> Colour {
    const STOPS: [[f64; 3]; 5] = [
        [13.0, 12.0, 40.0],
        [84.0, 22.0, 109.0],
        [187.0, 55.0, 84.0],
        [249.0, 142.0, 9.0],
        [252.0, 253.0, 191.0],
    ];
    let at = t.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let low = (at as usize).min(STOPS.len() - 2);
    let part = at - low as f64;
    [0, 1, 2].map(|c| (STOPS[low][c] * (1.0 - part) + STOPS[low + 1][c] * part) as u8)
}

/// A colour of this place on the colour circle, paler where it is less sure.
pub(crate) fn hue(turn: f64, sure: f64) -> Colour {
    [0.0, 1.0 / 3.0, 2.0 / 3.0].map(|shift| {
        let wave = 0.5 + 0.5 * (std::f64::consts::TAU * (turn - shift)).cos();
        let full = 60.0 + 170.0 * wave;
        (full * sure + 250.0 * (1.0 - sure)) as u8
    })
}

/// An image, row by row from the top.
pub(crate) struct Image {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

impl Image {
    pub(crate) fn new(width: usize, height: usize, shade: impl Fn(usize) -> Colour) -> Image {
        Image { width, height, pixels: (0..width * height).map(shade).collect() }
    }

    /// Every pixel so many times in both directions.
    pub(crate) fn scaled(&self, by: usize) -> Image {
        let (width, height) = (self.width * by, self.height * by);
        Image::new(width, height, |k| self.pixels[k / width / by * self.width + k % width / by])
    }

    /// The bytes of a PNG file.
    pub(crate) fn png(&self) -> Vec<u8> {
        let mut rows = Vec::with_capacity(self.height * (1 + 3 * self.width));
        for row in self.pixels.chunks_exact(self.width) {
            rows.push(0);
            rows.extend(row.iter().flatten());
        }
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut header = Vec::new();
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        header.extend([8, 2, 0, 0, 0]);
        chunk(&mut bytes, b"IHDR", &header);
        chunk(&mut bytes, b"IDAT", &stored(&rows));
        chunk(&mut bytes, b"IEND", &[]);
        bytes
    }
}

fn chunk(bytes: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    bytes.extend((data.len() as u32).to_be_bytes());
    let start = bytes.len();
    bytes.extend(kind);
    bytes.extend(data);
    let crc = bytes[start..].iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    });
    bytes.extend((!crc).to_be_bytes());
}

/// The zlib form of data that is not compressed.
fn stored(data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x78, 1];
    let mut blocks = data.chunks(65_535).peekable();
    while let Some(block) = blocks.next() {
        bytes.push(u8::from(blocks.peek().is_none()));
        let length = block.len() as u16;
        bytes.extend(length.to_le_bytes());
        bytes.extend((!length).to_le_bytes());
        bytes.extend(block);
    }
    let (mut a, mut b) = (1u32, 0u32);
    for byte in data {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    bytes.extend(((b << 16) | a).to_be_bytes());
    bytes
}

/// Points and lines in a square of the plane.
pub(crate) struct Plot {
    low: f32,
    scale: f32,
    marks: String,
}

const SIDE: f32 = 600.0;

impl Plot {
    pub(crate) fn new(low: f32, high: f32) -> Plot {
        Plot { low, scale: SIDE / (high - low), marks: String::new() }
    }

    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        ((x - self.low) * self.scale, SIDE - (y - self.low) * self.scale)
    }

    fn add(&mut self, mark: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.marks.write_fmt(mark);
    }

    pub(crate) fn dot(&mut self, x: f32, y: f32, radius: f32, [r, g, b]: Colour) {
        let (x, y) = self.place(x, y);
        self.add(format_args!(
            "<circle cx='{x:.1}' cy='{y:.1}' r='{radius}' fill='#{r:02x}{g:02x}{b:02x}'/>"
        ));
    }

    pub(crate) fn ring(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.add(format_args!(
            "<circle cx='{x:.1}' cy='{y:.1}' r='5' fill='#fff' stroke='#222' stroke-width='2'/>"
        ));
    }

    pub(crate) fn line(&mut self, (x, y): (f32, f32), (u, v): (f32, f32)) {
        let ((x, y), (u, v)) = (self.place(x, y), self.place(u, v));
        self.add(format_args!("<path d='M{x:.1} {y:.1}L{u:.1} {v:.1}'/>"));
    }

    pub(crate) fn svg(&self) -> String {
        // Lines are thin and grey; circles say themselves what they are drawn with.
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {SIDE} {SIDE}'>\
             <style>path{{stroke:#999;stroke-width:.5;opacity:.6}}</style>\
             <rect width='{SIDE}' height='{SIDE}' fill='#fcfcfa'/>{}</svg>",
            self.marks
        )
    }
}
