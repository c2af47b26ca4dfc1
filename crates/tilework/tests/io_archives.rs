//! `.npz`: names, order, and archives that lie.

mod io_support;

use std::fs;
use std::io::Write;

use io_support::{Folder, assert_same, numbers, with_header};
use tilework::{Array, DType, Error, Npz, load_npz, save_npz, save_npz_compressed};

#[test]
fn archives_keep_names_and_order() {
    let folder = Folder::new("npz");
    let path = folder.file("x.npz");
    let arrays: Vec<(String, Array)> = DType::ALL
        .iter()
        .rev()
        .map(|&dtype| (format!("of {dtype}/ä"), numbers(dtype, &[3, 4]).transpose()))
        .collect();
    let list: Vec<(&str, &Array)> =
        arrays.iter().map(|(name, array)| (name.as_str(), array)).collect();
    for write in [save_npz, save_npz_compressed] {
        write(&path, &list).unwrap();
        let read = load_npz(&path).unwrap();
        assert_eq!(read.len(), arrays.len());
        for ((name, array), (given_name, given)) in read.iter().zip(&arrays) {
            assert_eq!(name, given_name);
            assert_same(array, given);
        }
        write(&path, &[]).unwrap();
        assert!(load_npz(&path).unwrap().is_empty());
    }
    let x = numbers(DType::Int8, &[2]);
    save_npz(&path, &[("x.npy", &x), ("y", &x)]).unwrap();
    let names: Vec<String> = load_npz(&path).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["x", "y"]);
    for names in [["x", "x"], ["x", "x.npy"], ["", "x"]] {
        let result = save_npz(&path, &[(names[0], &x), (names[1], &x)]);
        assert!(matches!(result, Err(Error::Value(_))));
    }
    assert_eq!((load_npz(&path).unwrap().len(), folder.files()), (2, 1));
}

/// Overwrites a field of every central directory entry, and of every local header.
fn patch(archive: &mut [u8], central: usize, local: usize, value: u32) {
    for at in 0..archive.len() - 4 {
        let field = match &archive[at..at + 4] {
            b"PK\x01\x02" => at + central,
            b"PK\x03\x04" => at + local,
            _ => continue,
        };
        archive[field..field + 4].copy_from_slice(&value.to_le_bytes());
    }
}

#[test]
fn archives_that_lie_are_refused() {
    let folder = Folder::new("lies");
    let path = folder.file("x.npz");
    let x = Array::zeros(&[1000], DType::Float64).unwrap();
    for packed in [false, true] {
        let write = if packed { save_npz_compressed } else { save_npz };
        write(&path, &[("x", &x)]).unwrap();
        let honest = fs::read(&path).unwrap();
        // The size unpacked, too large and too small; the size packed, larger than the file.
        for (central, local, value) in
            [(24, 22, 1 << 30), (24, 22, 0xffff_fff0), (24, 22, 200), (20, 18, 1 << 30)]
        {
            let mut lie = honest.clone();
            patch(&mut lie, central, local, value);
            fs::write(&path, &lie).unwrap();
            let error = load_npz(&path).unwrap_err();
            assert!(matches!(error, Error::Format(_)), "{packed} {central} {value}: {error}");
        }
        // A wrong checksum.
        let mut lie = honest.clone();
        patch(&mut lie, 16, 14, 12345);
        fs::write(&path, &lie).unwrap();
        assert!(matches!(load_npz(&path), Err(Error::Format(_))));
    }
    // A header that promises more than its member holds.
    let mut lie = Vec::new();
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(&mut lie));
    archive.start_file("x.npy", zip::write::SimpleFileOptions::default()).unwrap();
    let dict = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000,)}";
    archive.write_all(&with_header(1, dict, &[0; 800])).unwrap();
    archive.finish().unwrap();
    fs::write(&path, &lie).unwrap();
    assert!(load_npz(&path).unwrap_err().to_string().contains("needs 800000000000 bytes"));
}

#[test]
fn one_member_that_cannot_be_read_keeps_nobody_from_the_others() {
    let folder = Folder::new("text");
    let path = folder.file("x.npz");
    let mut packed = Vec::new();
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(&mut packed));
    let options = zip::write::SimpleFileOptions::default();
    let text = "{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}";
    let numbers = "{'descr': '|i1', 'fortran_order': False, 'shape': (2,)}";
    archive.add_directory("below", options).unwrap();
    for (name, dict, data) in [("text", text, &[97u8, 0, 0, 0][..]), ("x", numbers, &[1, 2])] {
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(&with_header(1, dict, data)).unwrap();
    }
    archive.finish().unwrap();
    fs::write(&path, &packed).unwrap();
    assert!(load_npz(&path).is_err());
    let mut archive = Npz::open(&path).unwrap();
    assert_eq!(archive.names(), ["text", "x"]);
    for _ in 0..2 {
        assert_eq!(archive.read("x").unwrap().to_vec::<i8>().unwrap(), [1, 2]);
        assert!(archive.read("text").unwrap_err().to_string().contains("x.npz: text: "));
    }
    assert!(matches!(archive.read("x.npy"), Err(Error::Value(_))));
    assert!(matches!(Npz::open(folder.file("none.npz")), Err(Error::Io { .. })));
}
