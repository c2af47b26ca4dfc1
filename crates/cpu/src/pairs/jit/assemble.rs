//! From a recorded program to machine code: a loop over the j of a block for a few vectors of i.
//!
//! Everything that lasts for the whole loop (states, then variables of i, then constants) has a
//! register as long as there are any; computed values get what is left, and the one that is needed
//! last goes to the stack when nothing is. Numbers of j and constants are read from memory by the
//! instructions that need them. `instructions` chooses machine instructions, `registers` keeps book of
//! values. Assembled programs are run by `jit::Compiled`; `jit::Arguments`
//! says what they are given.

mod instructions;
mod registers;

use std::collections::HashMap;
use std::mem::offset_of;

use iced_x86::{Code, Encoder, Instruction as Machine, MemoryOperand, Register};
use tilework_simd::Elem;
use tilework_simd::record::{Op, Value};

use super::Arguments;
use super::program::{Leaf, Program};
use super::schedule::{Instance, Item, Schedule};
use super::target::Target;

/// Where an operand is.
#[derive(Clone, Copy)]
enum Source {
    In(Register),
    At(MemoryOperand),
}

/// A look at a mask whose rare branch is assembled after the loop.
struct Branch {
    /// Where the four bytes of the jump's distance are.
    jump: usize,
    /// Where it comes back to.
    back: usize,
    mask: Register,
    value: Register,
    note: u32,
}

const ARGUMENTS: Register = Register::RDI;
const LANES: Register = Register::RSI;
const ROW: Register = Register::RDX;
const NUMBERS: Register = Register::RCX;
const GIVEN: Register = Register::R11;
const LEFT: Register = Register::RAX;
const HIT: Register = Register::R8;
const LAST_HIT: Register = Register::R10;
const SCRATCH: Register = Register::R9;

/// The machine code of a program, entered at the offset given; None if it needs more than there is.
pub(super) fn assemble(
    program: &Program,
    target: Target,
    vectors: usize,
    together: usize,
) -> Option<(Vec<u8>, usize)> {
    let mut assembler = Assembler::new(program, target, vectors, together);
    assembler.function()
}

struct Assembler<'p> {
    program: &'p Program,
    target: Target,
    schedule: Schedule,
    encoder: Encoder,
    /// Constants, before the code.
    pool: Vec<u8>,
    constants: HashMap<(Elem, u64), usize>,
    code: Vec<u8>,
    /// Where the code begins, after the constants.
    entry: usize,
    /// Registers and who is in them; the last one is for instructions that are several.
    held: Vec<Option<Instance>>,
    pinned: Vec<bool>,
    place: Vec<Option<usize>>,
    mask_held: [Option<Instance>; 8],
    /// Where instances are on the stack.
    slots: Vec<Option<usize>>,
    frame: usize,
    /// Registers of the operands at hand, which stay.
    locked: Vec<usize>,
    branches: Vec<Branch>,
    time: usize,
}

impl<'p> Assembler<'p> {
    fn new(program: &'p Program, target: Target, vectors: usize, together: usize) -> Self {
        let schedule = Schedule::new(program, vectors, together);
        let registers = if target.wide { 32 } else { 16 };
        let instances = program.instructions.len() * vectors;
        let mut assembler = Assembler {
            program,
            target,
            schedule,
            encoder: Encoder::new(64),
            pool: Vec::new(),
            constants: HashMap::new(),
            code: Vec::new(),
            entry: 0,
            held: vec![None; registers - 1],
            pinned: vec![false; registers - 1],
            place: vec![None; instances],
            mask_held: [None; 8],
            slots: vec![None; instances],
            frame: 0,
            locked: Vec::new(),
            branches: Vec::new(),
            time: 0,
        };
        for instruction in &program.instructions {
            if let Op::Bits(bits) = instruction.op {
                assembler.constant(instruction.elem, bits);
            }
        }
        assembler
    }

    /// The offset of a constant in the pool: one number for broadcasts, or a whole register.
    fn constant(&mut self, elem: Elem, bits: u64) -> usize {
        let size = if elem == Elem::F32 { 4 } else { 8 };
        let copies = if self.target.wide { 1 } else { 32 / size };
        let pool = &mut self.pool;
        *self.constants.entry((elem, bits)).or_insert_with(|| {
            pool.resize(pool.len().next_multiple_of(size * copies), 0);
            let at = pool.len();
            (0..copies).for_each(|_| pool.extend(&bits.to_le_bytes()[..size]));
            at
        })
    }

    fn function(&mut self) -> Option<(Vec<u8>, usize)> {
        let target = self.target;
        let ones = self.constant(target.elem, 1);
        let entry = self.pool.len().next_multiple_of(64);
        self.pool.resize(entry, 0);
        self.entry = entry;
        self.push(Machine::with1(Code::Push_r64, Register::RBP).ok()?)?;
        self.push(Machine::with2(Code::Mov_r64_rm64, Register::RBP, Register::RSP).ok()?)?;
        self.push(Machine::with2(Code::And_rm64_imm8, Register::RSP, -64).ok()?)?;
        self.push(Machine::with2(Code::Sub_rm64_imm32, Register::RSP, 0x1000).ok()?)?;
        let frame_at = self.code.len() - 4;
        for (register, offset) in [
            (LANES, offset_of!(Arguments, lanes)),
            (ROW, offset_of!(Arguments, row)),
            (NUMBERS, offset_of!(Arguments, numbers)),
            (GIVEN, offset_of!(Arguments, given)),
            (HIT, offset_of!(Arguments, hit)),
            (LAST_HIT, offset_of!(Arguments, last_hit)),
        ] {
            self.read(register, ARGUMENTS, offset)?;
        }
        let states = self.pin()?;
        self.read(LEFT, ARGUMENTS, offset_of!(Arguments, count))?;
        let here = entry + self.code.len();
        self.fill(here.next_multiple_of(64) - here)?;
        let start = self.code.len();
        for time in 0..self.schedule.items.len() {
            self.time = time;
            match self.schedule.items[time] {
                Item::Compute(value, vector) => self.compute(value, vector)?,
                Item::Hit(hit, vector) => self.hit(hit, vector)?,
                Item::Store(value, vector) => self.store(value, vector)?,
            }
        }
        self.time = self.schedule.items.len();
        self.carry(&states)?;
        let rows = self.program.rows();
        let step = (rows * target.row_step(self.program.across)) as i32;
        self.push(Machine::with2(Code::Add_rm64_imm32, ROW, step).ok()?)?;
        if self.program.leaves.iter().any(|leaf| matches!(leaf, Leaf::Given(_))) {
            let step = memory(ARGUMENTS, offset_of!(Arguments, given_step));
            self.push(Machine::with2(Code::Add_r64_rm64, GIVEN, step).ok()?)?;
        }
        if self.program.stored.is_some() {
            let row = (self.schedule.vectors * target.bytes()) as i32;
            self.push(Machine::with2(Code::Add_rm64_imm32, HIT, row).ok()?)?;
        }
        if let Some(register) = self.register_of_place() {
            let (code, _) = target.binary(Op::AddInt)?;
            let register = self.vector(register);
            let one = self.pooled(ones);
            self.push(Machine::with3(code, register, register, one).ok()?)?;
        }
        let full = if self.program.hits.is_empty() {
            None
        } else {
            self.push(Machine::with1(Code::Dec_rm64, LEFT).ok()?)?;
            self.push(Machine::with2(Code::Cmp_r64_rm64, HIT, LAST_HIT).ok()?)?;
            let jump = self.jump(Code::Ja_rel32_64)?;
            self.push(Machine::with2(Code::Test_rm64_r64, LEFT, LEFT).ok()?)?;
            Some(jump)
        };
        if full.is_none() {
            self.push(Machine::with2(Code::Sub_rm64_imm8, LEFT, rows as i32).ok()?)?;
        }
        let again = self.jump(Code::Jne_rel32_64)?;
        self.land(again, start);
        if let Some(full) = full {
            self.land(full, self.code.len());
        }
        self.finish(&states)?;
        for branch in std::mem::take(&mut self.branches) {
            self.note(&branch)?;
        }
        let frame = self.frame.next_multiple_of(64) as u32;
        self.code[frame_at..frame_at + 4].copy_from_slice(&frame.to_le_bytes());
        let mut bytes = std::mem::take(&mut self.pool);
        bytes.append(&mut self.code);
        Some((bytes, entry))
    }

    // Registers for the whole loop.

    /// Gives registers to what lasts, and fills them. The states' leaves, each with its next value.
    fn pin(&mut self) -> Option<Vec<(Instance, Instance)>> {
        let (program, vectors) = (self.program, self.schedule.vectors);
        let lasting = |wanted: fn(&Leaf) -> bool| {
            let values = program.instructions.iter().enumerate();
            values.filter_map(move |(value, instruction)| match instruction.op {
                Op::Leaf(leaf) if wanted(&program.leaves[leaf as usize]) => {
                    Some((value as Value, program.leaves[leaf as usize]))
                }
                _ => None,
            })
        };
        // Values that are computed get at most half; beyond that some wait on the stack.
        let registers = self.held.len();
        let mut free = registers - (self.schedule.pressure + 3).min(registers / 2);
        let mut states = Vec::new();
        self.read(SCRATCH, ARGUMENTS, offset_of!(Arguments, states))?;
        if let Some((value, _)) = lasting(|leaf| *leaf == Leaf::Place).next() {
            let instance = self.schedule.instance(value, 0);
            let register = self.claim(instance, &mut free)?;
            let place = memory(ARGUMENTS, offset_of!(Arguments, place));
            let register = self.vector(register);
            self.push(Machine::with2(self.target.broadcast(), register, place).ok()?)?;
        }
        for (value, leaf) in lasting(|leaf| matches!(leaf, Leaf::State(_) | Leaf::Fixed(_))) {
            let (Leaf::State(number) | Leaf::Fixed(number)) = leaf else { continue };
            self.read(LEFT, SCRATCH, number as usize * 8)?;
            for vector in 0..vectors {
                let instance = self.schedule.instance(value, vector);
                let from = memory(LEFT, vector * self.target.bytes());
                match self.claim(instance, &mut free) {
                    Some(register) => {
                        let register = self.vector(register);
                        self.push(Machine::with2(self.target.load(), register, from).ok()?)?;
                    }
                    None => {
                        let (scratch, slot) = (self.scratch(), self.slot(instance));
                        self.push(Machine::with2(self.target.load(), scratch, from).ok()?)?;
                        self.push(Machine::with2(self.target.store(), slot, scratch).ok()?)?;
                    }
                }
                if matches!(leaf, Leaf::State(_)) {
                    let next = self.schedule.instance(program.next[number as usize], vector);
                    states.push((instance, next));
                }
            }
        }
        let of_i: Vec<Value> =
            lasting(|leaf| matches!(leaf, Leaf::Lanes(_))).map(|(value, _)| value).collect();
        let is_constant = |value: &usize| matches!(program.instructions[*value].op, Op::Bits(_));
        let constants = (0..program.instructions.len()).filter(is_constant);
        let numbers = lasting(|leaf| matches!(leaf, Leaf::Number(_))).map(|(value, _)| value);
        let shared: Vec<Value> = numbers.chain(constants.map(|value| value as Value)).collect();
        let all = of_i.iter().flat_map(|&value| (0..vectors).map(move |vector| (value, vector)));
        let all: Vec<(Value, usize)> = all.chain(shared.iter().map(|&value| (value, 0))).collect();
        for (value, vector) in all {
            let instance = self.schedule.instance(value, vector);
            if self.schedule.uses[instance].is_empty() {
                continue;
            }
            let Some(register) = self.claim(instance, &mut free) else { break };
            self.load_home(instance, register)?;
        }
        Some(states)
    }

    fn claim(&mut self, instance: Instance, free: &mut usize) -> Option<usize> {
        *free = free.checked_sub(1)?;
        let register = self.held.iter().position(Option::is_none)?;
        self.held[register] = Some(instance);
        self.pinned[register] = true;
        self.place[instance] = Some(register);
        Some(register)
    }

    fn register_of_place(&self) -> Option<usize> {
        let is_place = |op: Op| match op {
            Op::Leaf(leaf) => self.program.leaves[leaf as usize] == Leaf::Place,
            _ => false,
        };
        let value = self.program.instructions.iter().position(|i| is_place(i.op))?;
        self.place[self.schedule.instance(value as Value, 0)]
    }

    /// States take their next values, where they have not done so already.
    fn carry(&mut self, states: &[(Instance, Instance)]) -> Option<()> {
        for &(state, next) in states {
            if state == next {
                continue;
            }
            match self.place[state] {
                Some(register) if self.place[next] == Some(register) => {}
                Some(register) => {
                    let from = self.register(next)?;
                    let (from, register) = (self.vector(from), self.vector(register));
                    self.push(Machine::with2(self.target.load(), register, from).ok()?)?;
                    self.locked.clear();
                }
                None => {
                    let from = self.register(next)?;
                    let (from, slot) = (self.vector(from), self.slot(state));
                    self.push(Machine::with2(self.target.store(), slot, from).ok()?)?;
                    self.locked.clear();
                }
            }
        }
        Some(())
    }

    /// Writes the states back and returns.
    fn finish(&mut self, states: &[(Instance, Instance)]) -> Option<()> {
        let hits = memory(ARGUMENTS, offset_of!(Arguments, hit));
        self.push(Machine::with2(Code::Mov_rm64_r64, hits, HIT).ok()?)?;
        let left = memory(ARGUMENTS, offset_of!(Arguments, count));
        self.push(Machine::with2(Code::Mov_rm64_r64, left, LEFT).ok()?)?;
        self.read(SCRATCH, ARGUMENTS, offset_of!(Arguments, states))?;
        for &(state, _) in states {
            let (value, vector) = (state / self.schedule.vectors, state % self.schedule.vectors);
            let Op::Leaf(leaf) = self.program.instructions[value].op else { continue };
            let Leaf::State(number) = self.program.leaves[leaf as usize] else { continue };
            self.read(LEFT, SCRATCH, number as usize * 8)?;
            let to = memory(LEFT, vector * self.target.bytes());
            let register = match self.place[state] {
                Some(register) => self.vector(register),
                None => {
                    let (scratch, slot) = (self.scratch(), self.slot(state));
                    self.push(Machine::with2(self.target.load(), scratch, slot).ok()?)?;
                    scratch
                }
            };
            self.push(Machine::with2(self.target.store(), to, register).ok()?)?;
        }
        self.push(Machine::with(Code::VEX_Vzeroupper))?;
        self.push(Machine::with2(Code::Mov_r64_rm64, Register::RSP, Register::RBP).ok()?)?;
        self.push(Machine::with1(Code::Pop_r64, Register::RBP).ok()?)?;
        self.push(Machine::with(Code::Retnq))
    }
}

fn memory(base: Register, offset: usize) -> MemoryOperand {
    MemoryOperand::with_base_displ(base, offset as i64)
}

fn broadcast(base: Register, offset: usize, wide: bool) -> MemoryOperand {
    MemoryOperand { is_broadcast: wide, ..memory(base, offset) }
}
