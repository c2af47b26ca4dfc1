//! Arrays in any format that serde has, feature `serde`.
//!
//! An array is a structure of three fields: `dtype` (its name), `shape` (lengths) and `data` (the
//! elements' bytes in row-major order, least byte first). May assume nothing of what is read: the
//! bytes must be exactly those that shape and dtype ask for. Text formats write bytes as a list
//! of numbers.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeStruct, Serializer};
use tilework_backend::try_filled;
use tilework_ops::DType;

use crate::array::Array;

const FIELDS: &[&str] = &["dtype", "shape", "data"];

impl Serialize for Array {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.len().saturating_mul(self.dtype().size());
        let mut data = try_filled("serialize", 0, count).map_err(S::Error::custom)?;
        self.read_bytes(&mut data).map_err(S::Error::custom)?;
        let mut fields = serializer.serialize_struct("Array", FIELDS.len())?;
        fields.serialize_field("dtype", self.dtype().name())?;
        fields.serialize_field("shape", self.shape())?;
        fields.serialize_field("data", &Bytes(data))?;
        fields.end()
    }
}

impl<'de> Deserialize<'de> for Array {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Array, D::Error> {
        deserializer.deserialize_struct("Array", FIELDS, Fields)
    }
}

/// Dtypes by their names, for fields of one's own: `#[serde(with = "tilework::serde_dtype")]`.
pub mod dtype {
    use super::{DType, Deserialize, Deserializer, Name, Serializer};

    /// Writes the name.
    pub fn serialize<S: Serializer>(dtype: &DType, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(dtype.name())
    }

    /// Reads the name.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DType, D::Error> {
        Name::deserialize(deserializer).map(|name| name.0)
    }
}

/// A dtype that is read by its name.
struct Name(DType);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a dtype")
            }
            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Name, E> {
                name.parse().map(Name).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Bytes, which serde's own vectors of numbers are not.
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct Content;
        impl<'de> Visitor<'de> for Content {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Bytes, A::Error> {
                // What the format says of the length is not believed: the vector grows.
                let mut bytes = Vec::new();
                while let Some(byte) = items.next_element()? {
                    bytes.push(byte);
                }
                Ok(Bytes(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Content)
    }
}

/// The three fields, in order or by name.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Array;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array: dtype, shape and data")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Array, A::Error> {
        let missing = |place| A::Error::invalid_length(place, &"dtype, shape and data");
        let dtype: Name = items.next_element()?.ok_or_else(|| missing(0))?;
        let shape: Vec<usize> = items.next_element()?.ok_or_else(|| missing(1))?;
        let data: Bytes = items.next_element()?.ok_or_else(|| missing(2))?;
        build(dtype, &shape, data)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Array, A::Error> {
        let (mut dtype, mut shape, mut data) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            let (name, twice) = match key.as_str() {
                "dtype" => ("dtype", dtype.replace(map.next_value::<Name>()?).is_some()),
                "shape" => ("shape", shape.replace(map.next_value::<Vec<usize>>()?).is_some()),
                "data" => ("data", data.replace(map.next_value::<Bytes>()?).is_some()),
                other => return Err(A::Error::unknown_field(other, FIELDS)),
            };
            if twice {
                return Err(A::Error::duplicate_field(name));
            }
        }
        let dtype = dtype.ok_or_else(|| A::Error::missing_field("dtype"))?;
        let shape = shape.ok_or_else(|| A::Error::missing_field("shape"))?;
        build(dtype, &shape, data.ok_or_else(|| A::Error::missing_field("data"))?)
    }
}

fn build<E: serde::de::Error>(dtype: Name, shape: &[usize], data: Bytes) -> Result<Array, E> {
    Array::from_bytes(dtype.0, shape, &data.0).map_err(E::custom)
}
