//! Arrays as text: compared with what NumPy printed (`scripts/show_cases.py`), and what NumPy does
//! not have.

use tilework::{
    Array, Complex, DType, Device, FloatMode, PrintOptions, Sign, bf16, f16, read_npy, s, write_npy,
};

/// The array of a case: its bytes go through the .npy reader, which takes any dtype.
fn array(dtype: DType, shape: &[usize], data: &str) -> Array {
    let signed: Vec<isize> = shape.iter().map(|&len| len as isize).collect();
    if data == "arange" {
        let len = shape.iter().product::<usize>();
        return Array::arange(0, len, 1, dtype).unwrap().reshape(&signed).unwrap();
    }
    let mut file = Vec::new();
    write_npy(&mut file, &Array::zeros(shape, dtype).unwrap()).unwrap();
    let header = file.len() - shape.iter().product::<usize>() * dtype.size();
    file.truncate(header);
    let digits = data.trim_matches('-').as_bytes();
    file.extend(
        digits
            .chunks(2)
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()),
    );
    read_npy(&file[..]).unwrap()
}

fn options(words: &[&str]) -> PrintOptions {
    let mut options = PrintOptions::DEFAULT;
    for word in words {
        let (key, value) = word.split_once('=').unwrap();
        match key {
            "precision" => options.precision = value.parse().unwrap(),
            "threshold" => options.threshold = value.parse().unwrap(),
            "edgeitems" => options.edge_items = value.parse().unwrap(),
            "linewidth" => options.line_width = value.parse().unwrap(),
            "suppress" => options.suppress = value == "True",
            "sign" => options.sign = if value == "+" { Sign::Always } else { Sign::Space },
            "floatmode" => {
                options.float_mode = match value {
                    "fixed" => FloatMode::Fixed,
                    "unique" => FloatMode::Unique,
                    "maxprec" => FloatMode::MaxPrecision,
                    _ => FloatMode::MaxPrecisionEqual,
                }
            }
            _ => panic!("{key}"),
        }
    }
    options
}

#[test]
fn prints_what_numpy_prints() {
    let _device = Device::reference().scope();
    let mut lines = include_str!("data/show.txt").lines();
    let (mut cases, mut wrong) = (0, 0);
    while let Some(line) = lines.next() {
        // A sign of " " makes the last word look empty.
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        assert_eq!(words[0], "case", "{line}");
        let shape: Vec<usize> =
            words[2].split(',').filter_map(|length| length.parse().ok()).collect();
        let array = array(words[1].parse().unwrap(), &shape, words[3]);
        let show = array.display(&options(&words[4..]));
        for found in [show.to_string(), format!("{show:?}")] {
            let count = lines.next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
            let wanted: Vec<&str> = lines.by_ref().take(count).collect();
            let wanted = wanted.join("\n");
            if found != wanted {
                eprintln!("{line}\n{found}\nNumPy:\n{wanted}\n");
                wrong += 1;
            }
        }
        cases += 1;
    }
    assert!(cases > 200 && wrong == 0, "{wrong} texts of {cases} cases differ");
}

#[test]
fn bfloat16_has_its_own_shortest_digits() {
    let x = Array::from_slice(&[0.1f32, 1.0, -2.5].map(bf16::from_f32)).unwrap();
    assert_eq!(x.to_string(), "[ 0.1  1.  -2.5]");
    assert_eq!(format!("{x:?}"), "array([ 0.1,  1. , -2.5], dtype=bfloat16)");
    assert_eq!(Array::scalar(bf16::from_f32(0.1)).unwrap().to_string(), "0.1");
    assert_eq!(Array::scalar(f16::from_f32(0.1)).unwrap().to_string(), "0.1");
}

#[test]
fn views_show_their_elements_and_large_arrays_are_not_copied() {
    let _device = Device::reference().scope();
    let x = Array::arange(0, 12, 1, DType::Int32).unwrap().reshape(&[3, 4]).unwrap();
    let y = x.slice(&s![..;-1, ..;2]).unwrap().transpose();
    assert_eq!(y.to_string(), "[[ 8  4  0]\n [10  6  2]]");
    // Broadcast to far more elements than memory: only the corners are touched.
    let huge = Array::scalar(1.5f64).unwrap().broadcast_to(&[1 << 20, 1 << 20, 1 << 20]).unwrap();
    assert!(huge.to_string().starts_with("[[[1.5 1.5 1.5 ... 1.5 1.5 1.5]\n"));
    assert!(format!("{huge:?}").ends_with("shape=(1048576, 1048576, 1048576))"));
    let deep = Array::scalar(7i64).unwrap().broadcast_to(&[1; 64]).unwrap();
    assert_eq!(deep.to_string(), format!("{}7{}", "[".repeat(64), "]".repeat(64)));
}

#[test]
fn options_are_per_process_and_format_strings_have_a_say() {
    let x = Array::from_slice(&[1.0f64 / 3.0]).unwrap();
    assert_eq!(format!("{x:.3}"), "[0.333]");
    assert_eq!(format!("{x:.3?}"), "array([0.333])");
    let z = Array::scalar(Complex::new(1.0f32, 2.0)).unwrap();
    assert_eq!(z.to_string(), "(1+2j)");
    let silly = PrintOptions {
        precision: usize::MAX,
        edge_items: 0,
        line_width: 0,
        threshold: 0,
        ..PrintOptions::default()
    };
    assert_eq!(x.display(&silly).to_string(), "[0.3333333333333333]");
    let wide =
        PrintOptions { edge_items: usize::MAX, line_width: usize::MAX, threshold: 0, ..silly };
    assert_eq!(x.display(&wide).to_string(), "[0.3333333333333333]");
}

#[test]
fn memory_that_is_in_use_is_said_and_not_a_panic() {
    let x = Array::from_slice(&[1.0f32, 2.0]).unwrap();
    let _guard = x.write::<f32>().unwrap();
    let text = format!("{x} {x:?}");
    assert!(text.contains("array(..., shape=(2,), dtype=float32) <"), "{text}");
}
