//! A program for two j after one another, instruction by instruction in turn.
//!
//! Where registers are too few for two vectors of i, a vector alone would wait for its own results:
//! two j of one vector share its states, its variables and the constants, and hide each other's
//! latency. Every sum takes its j in order, so that its bits are those of the program. May assume a
//! program whose states change by its results alone; called by `jit::compile`.

use tilework_simd::record::{Instruction, NONE, Op, Value};

use super::program::{Leaf, Program};

/// The program of two j whose numbers are so many bytes apart; None where more than states goes from
/// one j to the next.
pub(super) fn twice(program: &Program, step: usize) -> Option<Program> {
    let only_states =
        !program.leaves.iter().any(|leaf| matches!(leaf, Leaf::Place | Leaf::Given(_)));
    if !only_states || !program.hits.is_empty() || program.stored.is_some() {
        return None;
    }
    let mut leaves = program.leaves.clone();
    let mut instructions: Vec<Instruction> = Vec::with_capacity(2 * program.instructions.len());
    // The values of the first and of the second j.
    let (mut first, mut second): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    let mut push = |instruction: Instruction| {
        instructions.push(instruction);
        (instructions.len() - 1) as Value
    };
    for instruction in &program.instructions {
        let args = renamed(instruction.args, &first);
        first.push(push(Instruction { args, ..*instruction }));
        // The second j follows as soon as the states that it begins with are there.
        while let Some(instruction) = program.instructions.get(second.len())
            && second.len() < first.len()
        {
            let same = first[second.len()];
            let leaf = match instruction.op {
                Op::Leaf(leaf) => Some(program.leaves[leaf as usize]),
                _ => None,
            };
            second.push(match (instruction.op, leaf) {
                (_, Some(Leaf::State(number))) => {
                    match first.get(program.next[number as usize] as usize) {
                        Some(&next) => next,
                        None => break,
                    }
                }
                (_, Some(Leaf::Row(offset))) => {
                    leaves.push(Leaf::Row(offset + step as u32));
                    push(Instruction { op: Op::Leaf(leaves.len() as u32 - 1), ..*instruction })
                }
                (Op::Bits(_), _) | (_, Some(_)) => same,
                _ => {
                    let args = renamed(instruction.args, &second);
                    let varies = args != renamed(instruction.args, &first);
                    if varies { push(Instruction { args, ..*instruction }) } else { same }
                }
            });
        }
    }
    let results = |of: &[Value]| program.next.iter().map(|&value| of[value as usize]).collect();
    Some(Program {
        across: program.across,
        between: Some(results(&first)),
        next: results(&second),
        instructions,
        leaves,
        hits: Vec::new(),
        stored: None,
    })
}

fn renamed(args: [Value; 3], values: &[Value]) -> [Value; 3] {
    args.map(|arg| if arg == NONE { NONE } else { values[arg as usize] })
}
