//! `.npy`, and both kinds of NumPy's own files (`scripts/npy_files.py`): round trips, broken files.

mod io_support;

use std::fs;
use std::io::{ErrorKind, Write};

use io_support::{
    Folder, assert_same, bytes, load_mapped, load_mapped_private, numbers, numpy, with_header,
};
use proptest::prelude::*;
use tilework::{DType, Device, Error, load, load_npz, read_npy, s, save, save_npz, write_npy};

#[test]
fn every_dtype_and_layout_comes_back() {
    let folder = Folder::new("layouts");
    for device in [Device::cpu(), Device::reference()] {
        let _device = device.scope();
        for dtype in DType::ALL {
            let x = numbers(dtype, &[2, 3, 4]);
            let layouts = [
                x.clone(),
                x.transpose(),
                x.permute(&[1, 0, 2]).unwrap(),
                x.slice(&s![.., 1..;2, ..;-1]).unwrap(),
                x.slice(&s![1, .., 1]).unwrap(),
                x.slice(&s![1, 1, 1]).unwrap(),
                x.slice(&s![.., 3.., ..]).unwrap(),
                x.slice(&s![0, .., ..]).unwrap().broadcast_to(&[5, 3, 4]).unwrap(),
            ];
            for array in &layouts {
                let read = read_npy(&bytes(array)[..]).unwrap();
                assert_same(&read, array);
                assert_eq!(read.device(), device);
                let path = folder.file("x.npy");
                array.save(&path).unwrap();
                assert_same(&load(&path).unwrap(), array);
                assert_same(&load_mapped(&path).unwrap(), array);
            }
            // Fortran order stays what it is, without a copy on either side.
            let turned = read_npy(&bytes(&x.transpose())[..]).unwrap();
            assert_eq!(turned.strides(), x.transpose().strides());
        }
    }
    assert_eq!(folder.files(), 1);
}

#[test]
fn reads_what_numpy_wrote() {
    for dtype in DType::ALL {
        let path = numpy(&format!("{dtype}.npy"));
        let array = load(&path).unwrap();
        assert_same(&array, &numbers(dtype, &[2, 3]));
        assert_same(&load_mapped(&path).unwrap(), &array);
        // And writes the same, but for how much the header is padded.
        let (ours, theirs) = (bytes(&array), fs::read(&path).unwrap());
        let text = |file: &[u8]| {
            let end = file.iter().position(|&byte| byte == b'}').unwrap();
            file[10..=end].to_vec()
        };
        assert_eq!(text(&ours), text(&theirs));
        assert!(ours.ends_with(&theirs[theirs.len() - 6 * dtype.size()..]));
    }
    use DType::*;
    for dtype in [Int16, UInt32, Float16, Float64, Complex64, Complex128] {
        let path = numpy(&format!("big_{dtype}.npy"));
        assert_same(&load(&path).unwrap(), &numbers(dtype, &[2, 3]));
        assert_same(&load_mapped(&path).unwrap(), &numbers(dtype, &[2, 3]));
    }
    let fortran = load(numpy("fortran_float32.npy")).unwrap();
    assert_same(&fortran, &numbers(Float32, &[2, 3, 2]));
    assert_eq!(fortran.strides(), [1, 2, 6]);
    assert_same(&load(numpy("scalar_float64.npy")).unwrap(), &numbers(Float64, &[]));
    assert_same(&load_mapped(numpy("empty_int32.npy")).unwrap(), &numbers(Int32, &[0, 3]));
    for version in [2, 3] {
        let file = numpy(&format!("version{version}_int64.npy"));
        assert_same(&load(file).unwrap(), &numbers(Int64, &[2, 3]));
    }
    for name in ["stored.npz", "packed.npz"] {
        let arrays = load_npz(numpy(name)).unwrap();
        assert_eq!((arrays.len(), arrays[0].0.as_str()), (2, "x"));
        assert_same(&arrays[0].1, &numbers(Float32, &[2, 3]));
    }
}

#[test]
fn refuses_what_is_no_array() {
    let cases = [
        ("bad_objects.npy", "never read"),
        ("bad_records.npy", "records"),
        ("bad_text.npy", "text"),
        ("bad_times.npy", "times"),
        ("stored.npz", "load_npz"),
    ];
    for (name, part) in cases {
        for error in [load(numpy(name)).unwrap_err(), load_mapped(numpy(name)).unwrap_err()] {
            let text = error.to_string();
            assert!(matches!(error, Error::Format(_)) && text.contains(part), "{text}");
            assert!(text.contains(name), "{text}");
        }
    }
    let pickle = read_npy(&b"\x80\x04\x95\x0b\x00\x00\x00\x00"[..]).unwrap_err();
    assert!(pickle.to_string().contains("pickle"));
    let directory = load(std::env::temp_dir());
    assert!(matches!(directory, Err(Error::Io { kind: ErrorKind::IsADirectory, .. })));
    assert!(matches!(load_npz(numpy("int8.npy")), Err(Error::Format(_))));
}

#[test]
fn files_cut_at_every_byte_are_errors() {
    let folder = Folder::new("cut");
    let path = folder.file("cut.npy");
    for name in ["float32.npy", "version3_int64.npy", "fortran_float32.npy", "big_complex64.npy"] {
        let whole = fs::read(numpy(name)).unwrap();
        for end in 0..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            let errors = [
                read_npy(&whole[..end]).unwrap_err(),
                load(&path).unwrap_err(),
                load_mapped(&path).unwrap_err(),
            ];
            for error in errors {
                assert!(matches!(error, Error::Format(_)), "{name} cut at {end}: {error}");
            }
        }
    }
    fs::write(&path, &fs::read(numpy("float32.npy")).unwrap()[..140]).unwrap();
    let text = load(&path).unwrap_err().to_string();
    let wanted =
        "shape (2, 3) of float32 needs 24 bytes, but only 12 follow the header of 128 bytes";
    assert!(text.contains("cut.npy") && text.contains(wanted), "{text}");
    for name in ["stored.npz", "packed.npz"] {
        let whole = fs::read(numpy(name)).unwrap();
        for end in 0..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            assert!(load_npz(&path).is_err(), "{name} cut at {end}");
        }
    }
}

#[test]
fn shapes_that_promise_too_much_cost_nothing() {
    let folder = Folder::new("huge");
    let path = folder.file("huge.npy");
    for shape in
        ["(1000000000000,)", "(4611686018427387904,)", "(3, 3, 3)", "(99999999999999999999,)"]
    {
        for order in ["True", "False"] {
            let dict = format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': {shape}}}");
            let file = with_header(1, &dict, &[0; 64]);
            fs::write(&path, &file).unwrap();
            for result in [read_npy(&file[..]), load(&path), load_mapped(&path)] {
                assert!(matches!(result, Err(Error::Format(_))), "{shape}");
            }
        }
    }
    let mut long = b"\x93NUMPY\x02\x00".to_vec();
    long.extend(u32::MAX.to_le_bytes());
    assert!(read_npy(&long[..]).unwrap_err().to_string().contains("too long"));
    let axes =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({})}}", "1,".repeat(65));
    assert!(read_npy(&with_header(2, &axes, &[0; 8])[..]).unwrap_err().to_string().contains("65"));
}

#[test]
fn streams_hold_several_arrays_one_after_the_other() {
    let mut file = bytes(&numbers(DType::Int16, &[3]));
    file.extend(bytes(&numbers(DType::Bool, &[2, 2])));
    let mut rest = &file[..];
    assert_same(&read_npy(&mut rest).unwrap(), &numbers(DType::Int16, &[3]));
    assert_same(&read_npy(&mut rest).unwrap(), &numbers(DType::Bool, &[2, 2]));
    assert!(rest.is_empty());
}

/// A disk with room for so many bytes.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let count = bytes.len().min(self.0);
        self.0 -= count;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let x = numbers(DType::Float64, &[4, 5]);
    let size = bytes(&x).len();
    for room in 0..size {
        assert!(matches!(write_npy(Disk(room), &x), Err(Error::Io { .. })), "{room}");
    }
    write_npy(Disk(size), &x).unwrap();
    // What could not be written changed nothing, and guards are gone.
    x.fill(1.0).unwrap();
}

#[test]
fn saving_replaces_all_or_nothing() {
    let folder = Folder::new("replace");
    let path = folder.file("x.npy");
    let x = numbers(DType::Float32, &[5]);
    x.save(&path).unwrap();
    let guard = x.write::<f32>().unwrap();
    assert!(matches!(save(&path, &x), Err(Error::Borrowed(_))));
    assert!(matches!(save_npz(&path, &[("x", &x)]), Err(Error::Borrowed(_))));
    drop(guard);
    assert_eq!(folder.files(), 1);
    assert_same(&load(&path).unwrap(), &x);
    let missing = save(folder.file("no/x.npy"), &x);
    assert!(matches!(missing, Err(Error::Io { kind: ErrorKind::NotFound, .. })));
    let directory = save(&folder.0, &x);
    assert!(matches!(directory, Err(Error::Io { kind: ErrorKind::IsADirectory, .. })));
    assert!(save("", &x).is_err() && save("..", &x).is_err());
    assert_eq!(folder.files(), 1);
}

#[test]
fn mapped_files_are_not_copied_and_survive_replacement() {
    let folder = Folder::new("mapped");
    let path = folder.file("x.npy");
    let x = numbers(DType::Float64, &[100, 10]);
    x.save(&path).unwrap();
    let mapped = load_mapped(&path).unwrap();
    assert!(!mapped.is_writable() && mapped.storage().bytes() == 8000);
    assert!(matches!(mapped.fill(0.0), Err(Error::ReadOnly(_))));
    assert!(matches!(mapped.write::<f64>(), Err(Error::ReadOnly(_))));
    assert_eq!(mapped.sum(()).unwrap().item::<f64>().unwrap(), 499500.0);
    let view = mapped.slice(&s![..;-1, 3]).unwrap();
    drop(mapped);
    numbers(DType::Int8, &[1]).save(&path).unwrap();
    assert_eq!(view.get::<f64>(&[0]).unwrap(), 993.0);
    x.transpose().save(&path).unwrap();
    let private = load_mapped_private(&path).unwrap();
    private.add_assign(1.0).unwrap();
    assert_eq!(private.get::<f64>(&[0, 1]).unwrap(), 11.0);
    assert_same(&load(&path).unwrap(), &x.transpose());
    // A header of odd length: the data is not aligned, so it is read.
    let dict = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }";
    let data: Vec<u8> = [1.5f64, 2.5].iter().flat_map(|x| x.to_le_bytes()).collect();
    for pad in 0..16 {
        fs::write(&path, with_header(1, &format!("{dict}{}", " ".repeat(pad)), &data)).unwrap();
        assert_eq!(load_mapped(&path).unwrap().to_vec::<f64>().unwrap(), [1.5, 2.5]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_headers_never_panic(version in 0u8..5, dict in ".{0,80}", data in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = read_npy(&with_header(version.max(1), &dict, &data)[..]);
        let _ = read_npy(&data[..]);
    }

    #[test]
    fn almost_headers_never_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "'descr'", "'shape'", "'fortran_order'", ":", ",", "(", ")", "'<f8'", "'>c16'",
            "True", "False", "3", "0", "18446744073709551615", " ", "\n", "'", "[", "L", "é",
        ]), 0..24),
        data in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let _ = read_npy(&with_header(1, &words.concat(), &data)[..]);
    }

    #[test]
    fn changed_bytes_never_panic(name in prop::sample::select(vec!["float32.npy", "stored.npz", "packed.npz", "version2_int64.npy"]),
                                 changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut file = fs::read(numpy(name)).unwrap();
        for (index, byte) in changes {
            let at = index.index(file.len());
            file[at] = byte;
        }
        let path = std::env::temp_dir().join(format!("tilework-changed-{}", std::process::id()));
        fs::write(&path, &file).unwrap();
        let _ = read_npy(&file[..]);
        let _ = load(&path);
        let _ = load_mapped(&path);
        let _ = load_npz(&path);
        let _ = fs::remove_file(&path);
    }
}

/// NumPy spells two raw bytes `|V2`; only with an order are they the bfloat16 that is written here.
#[test]
fn raw_bytes_are_no_bfloat16() {
    let array = numbers(DType::BFloat16, &[2, 3]);
    let mut file = Vec::new();
    write_npy(&mut file, &array).unwrap();
    assert_same(&read_npy(&file[..]).unwrap(), &array);
    let at = file.windows(5).position(|text| text == b"'<V2'").expect("what is written");
    file[at + 1] = b'|';
    let error = read_npy(&file[..]).unwrap_err();
    assert!(matches!(error, Error::Format(_)) && error.to_string().contains("|V2"), "{error}");
}
