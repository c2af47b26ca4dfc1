//! What a tape is known by: bytes that differ wherever tapes do.
//!
//! Backends keep compiled code by it, so a field that is forgotten here would run one formula's code
//! for another: the match below names every action and every field, and is the only one of its kind.

use crate::{Action, Contraction, Input, Slot, SlotId, Step, Tape};

impl Tape {
    /// Adds bytes to a key that tell this tape from every other. They hold their own lengths, so
    /// whatever follows them in the key cannot be taken for a part of them.
    pub fn sign(&self, key: &mut Vec<u8>) {
        self.sign_without(key, |_| false);
    }

    /// The same for tapes that may differ in the values of some constants, which code gets as arguments.
    pub fn sign_without(&self, key: &mut Vec<u8>, is_argument: impl Fn(SlotId) -> bool) {
        let Tape { inputs, steps, outputs, single: _ } = self;
        count(key, inputs.len());
        for &Input { slot, per } in inputs {
            sign_slot(slot, key);
            key.push(per as u8);
        }
        count(key, steps.len());
        for (k, Step { action, operands, slot }) in steps.iter().enumerate() {
            match is_argument((inputs.len() + k) as SlotId) {
                true => key.push(10),
                false => sign_action(action, key),
            }
            sign_slot(*slot, key);
            count(key, operands.len());
            key.extend(operands.iter().flat_map(|operand| operand.to_le_bytes()));
        }
        count(key, outputs.len());
        key.extend(outputs.iter().flat_map(|output| output.to_le_bytes()));
    }
}

fn sign_slot(slot: Slot, key: &mut Vec<u8>) {
    key.push(slot.dtype as u8);
    word(key, slot.len);
}

fn sign_action(action: &Action, key: &mut Vec<u8>) {
    match action {
        Action::Apply(id) => key.extend([0, *id as u8]),
        Action::Cast => key.push(1),
        Action::Select => key.push(2),
        Action::Constant(value) => {
            key.extend([3, value.dtype() as u8]);
            key.extend(value.bytes());
        }
        Action::Extract(start) => {
            key.push(4);
            word(key, *start);
        }
        Action::Concat => key.push(5),
        Action::Place(start) => {
            key.push(6);
            word(key, *start);
        }
        Action::Fold(fold) => key.extend([7, *fold as u8]),
        Action::Dot => key.push(8),
        Action::Contract(contraction) => {
            let Contraction { left, right, over } = &**contraction;
            key.push(9);
            for shape in [left, right] {
                count(key, shape.len());
                shape.iter().for_each(|&size| word(key, size));
            }
            count(key, over.len());
            over.iter().for_each(|&(left, right)| key.extend([left, right]));
        }
    }
}

fn word(key: &mut Vec<u8>, number: u32) {
    key.extend(number.to_le_bytes());
}

/// Lists are far shorter than 2^32: slots are named by 16 bits.
fn count(key: &mut Vec<u8>, len: usize) {
    word(key, len as u32);
}

#[cfg(test)]
mod tests {
    use tilework_ops::{DType, Id, Scalar};

    use crate::{Builder, Per, Tape};

    fn signed(tape: &Tape) -> Vec<u8> {
        let mut key = Vec::new();
        tape.sign(&mut key);
        key
    }

    /// x op (a constant), with x of a length that varies with something.
    fn tape(id: Id, constant: Scalar, len: u32, per: Per) -> Tape {
        let mut builder = Builder::new();
        let x = builder.input(crate::Slot { dtype: DType::Float32, len }, per);
        let c = builder.constant(constant, 1);
        let y = builder.apply(id, &[x, c]).unwrap();
        builder.finish(&[y]).unwrap()
    }

    #[test]
    fn tapes_that_differ_in_one_thing_have_different_signatures() {
        let zero = Scalar::new(0.0f32);
        let tapes = [
            tape(Id::Add, zero, 3, Per::I),
            tape(Id::Subtract, zero, 3, Per::I),
            tape(Id::Add, Scalar::new(-0.0f32), 3, Per::I),
            tape(Id::Add, Scalar::new(f32::NAN), 3, Per::I),
            tape(Id::Add, zero, 4, Per::I),
            tape(Id::Add, zero, 3, Per::J),
            Tape::copy(DType::Float32),
            Tape::copy(DType::Float64),
            Tape::cast(DType::Float32, DType::Float64),
        ];
        let keys: Vec<Vec<u8>> = tapes.iter().map(signed).collect();
        for (a, one) in keys.iter().enumerate() {
            for (b, other) in keys.iter().enumerate() {
                assert_eq!(a == b, one == other, "tapes {a} and {b}");
                assert!(a == b || !other.starts_with(one), "{a} begins {b}");
            }
        }
        assert_eq!(keys[3], signed(&tape(Id::Add, Scalar::new(f32::NAN), 3, Per::I)));
    }
}
