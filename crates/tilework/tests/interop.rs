//! Conversions to and from other crates, where their features are on.

#![allow(missing_docs)]

#[cfg(feature = "ndarray")]
mod with_ndarray {
    use ndarray::{ArrayD, IxDyn, ShapeBuilder, s as cut};
    use tilework::{Array, Complex, DType, Element, Error, bf16, f16, s};

    fn there_and_back<T: Element>(elements: &[T]) {
        let rows = ArrayD::from_shape_vec(IxDyn(&[2, 3]), elements.to_vec()).unwrap();
        let columns = ArrayD::from_shape_vec(IxDyn(&[2, 3]).f(), elements.to_vec()).unwrap();
        for given in [&rows, &columns] {
            let array = Array::try_from(given).unwrap();
            assert_eq!((array.shape(), array.dtype()), (given.shape(), T::DTYPE));
            assert_eq!(ArrayD::<T>::try_from(&array).unwrap(), given);
            let view = given.slice(cut![.., ..;-2]);
            let turned = Array::try_from(view.t()).unwrap().transpose();
            assert_eq!(turned.to_ndarray::<T>().unwrap(), view.into_dyn());
        }
    }

    #[test]
    fn every_dtype_and_order() {
        there_and_back(&[true, false, true, true, false, false]);
        there_and_back(&[1i8, -2, 3, 4, 5, 6]);
        there_and_back(&[1i16, -2, 3, 4, 5, 6]);
        there_and_back(&[1i32, -2, 3, 4, 5, 6]);
        there_and_back(&[1i64, -2, 3, 4, 5, 6]);
        there_and_back(&[1u8, 2, 3, 4, 5, 6]);
        there_and_back(&[1u16, 2, 3, 4, 5, 6]);
        there_and_back(&[1u32, 2, 3, 4, 5, 6]);
        there_and_back(&[1u64, 2, 3, 4, 5, 6]);
        there_and_back(&[1.5f32, -2.0, 3.0, 4.0, 5.0, 6.0]);
        there_and_back(&[1.5f64, -2.0, 3.0, 4.0, 5.0, 6.0]);
        there_and_back(&[1.5f32, -2.0, 3.0, 4.0, 5.0, 6.0].map(f16::from_f32));
        there_and_back(&[1.5f32, -2.0, 3.0, 4.0, 5.0, 6.0].map(bf16::from_f32));
        there_and_back(&[1.5f32, -2.0, 3.0, 4.0, 5.0, 6.0].map(|x| Complex::new(x, -x)));
        there_and_back(&[1.5f64, -2.0, 3.0, 4.0, 5.0, 6.0].map(|x| Complex::new(x, -x)));
    }

    #[test]
    fn odd_shapes_and_wrong_dtypes() {
        for shape in [&[][..], &[0], &[2, 0, 3], &[1, 1]] {
            let array = Array::ones(shape, DType::Float32).unwrap();
            assert_eq!(array.to_ndarray::<f32>().unwrap().shape(), shape);
            assert!(matches!(array.to_ndarray::<f64>(), Err(Error::DType(_))));
            assert_eq!(array.with_ndarray::<f32, _>(|view| view.len()).unwrap(), array.len());
        }
        let x = Array::arange(0, 6, 1, DType::Int32).unwrap().reshape(&[2, 3]).unwrap();
        let last = x.slice(&s![.., -1]).unwrap();
        assert_eq!(last.with_ndarray::<i32, _>(|view| view.sum()).unwrap(), 7);
        assert_eq!(
            Array::try_from(ndarray::arr1(&[1u8, 2])).unwrap().to_vec::<u8>().unwrap(),
            [1, 2]
        );
    }
}

#[cfg(feature = "serde")]
mod with_serde {
    use tilework::{Array, Complex, DType, s};

    #[test]
    fn every_dtype_reads_back() {
        for dtype in DType::ALL {
            for shape in [&[2isize, 3][..], &[6], &[1, 6, 1]] {
                let x = Array::arange(0, 6, 1, dtype).unwrap().reshape(shape).unwrap();
                let text = serde_json::to_string(&x).unwrap();
                let y: Array = serde_json::from_str(&text).unwrap();
                assert_eq!((y.shape(), y.dtype()), (x.shape(), x.dtype()));
                assert_eq!(y.to_string(), x.to_string());
            }
            let empty = Array::zeros(&[0, 3], dtype).unwrap();
            let text = serde_json::to_string(&empty).unwrap();
            assert_eq!(serde_json::from_str::<Array>(&text).unwrap().shape(), [0, 3]);
            let most = Array::zeros(&[], dtype).unwrap().broadcast_to(&[1 << 62]).unwrap();
            assert!(serde_json::to_string(&most).is_err());
        }
    }

    #[test]
    fn the_layout_is_what_is_promised() {
        let x = Array::from_nested(&[[1i16, 2], [3, 258]]).unwrap();
        let column = x.slice(&s![.., 1]).unwrap();
        let text = serde_json::to_string(&column).unwrap();
        assert_eq!(text, r#"{"dtype":"int16","shape":[2],"data":[2,0,2,1]}"#);
        let z = Array::scalar(Complex::new(1.0f32, -2.0)).unwrap();
        let value = serde_json::to_value(&z).unwrap();
        assert_eq!(value["data"].as_array().unwrap().len(), 8);
    }

    #[test]
    fn broken_input_is_an_error() {
        let cases = [
            (r#"{"dtype":"int16","shape":[2],"data":[2,0,2]}"#, "3 bytes"),
            (r#"{"dtype":"int17","shape":[2],"data":[]}"#, "int17"),
            (r#"{"dtype":"int16","shape":[9223372036854775807],"data":[]}"#, "0 bytes"),
            (r#"{"dtype":"int16","shape":[4611686018427387904,4],"data":[]}"#, "memory"),
            (r#"{"dtype":"int16","shape":[-1],"data":[]}"#, "-1"),
            (r#"{"dtype":"int16","shape":[2]}"#, "data"),
            (r#"{"dtype":"int16","dtype":"int16"}"#, "duplicate"),
            (r#"{"kind":"int16"}"#, "kind"),
            (r#"["int16",[1]]"#, "length"),
            (r#"7"#, "an array"),
        ];
        for (text, part) in cases {
            let message = serde_json::from_str::<Array>(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
        assert!(serde_json::from_str::<Array>(r#"["int16",[1],[7,0]]"#).is_ok());
    }

    #[test]
    fn dtypes_by_name() {
        let mut text = Vec::new();
        let mut writer = serde_json::Serializer::new(&mut text);
        tilework::serde_dtype::serialize(&DType::BFloat16, &mut writer).unwrap();
        assert_eq!(text, b"\"bfloat16\"");
        let mut reader = serde_json::Deserializer::from_slice(&text);
        assert_eq!(tilework::serde_dtype::deserialize(&mut reader).unwrap(), DType::BFloat16);
    }
}
