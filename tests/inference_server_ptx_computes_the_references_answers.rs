//! The example's PTX runs on real GPUs only, and a test machine has none. So it is run here by a
//! small interpreter of the instructions that it uses, thread by thread, and its answers are
//! compared with the plain Rust reference. What each instruction does is taken from NVIDIA's
//! "Parallel Thread Execution ISA".

#[path = "../examples/inference_server/model/mod.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "a part of a program"
)]
mod model;

use std::collections::HashMap;

use model::layout::{
    ANSWER_PROBABILITIES, ANSWER_TOKENS, BATCH_SLOTS, PROMPT_LENGTH, PROMPT_SLOT, PROMPT_TOKENS,
};
use model::weights::Weights;
use model::{DIMENSION, PTX, VOCABULARY, reference};

/// Where the buffers lie in the memory of the test.
const PROMPT: u64 = 0x2_8000;
const BATCH: u64 = 0x2_9000;
const ANSWER: u64 = 0x2_a000;
const HIDDEN: u64 = 0x2_b000;
const LOGITS: u64 = 0x2_c000;
const PROBABILITIES: u64 = 0x3_0000;
const WEIGHTS: u64 = 0x100;
const MEMORY_BYTES: usize = 0x4_0000;

#[test]
fn the_ptx_gives_the_answers_of_the_reference() {
    const TOKENS: usize = 5;
    let weights = Weights::new();
    let mut gpu = Interpreter::new(PTX);
    gpu.write(WEIGHTS, &weights.image());
    let members: [(u32, &str); 3] = [(3, "a kernel st"), (0, "whose requ"), (5, "hello")];
    for (slot, prompt) in members {
        gpu.write(PROMPT, &7_u64.to_le_bytes());
        gpu.write(PROMPT + PROMPT_SLOT as u64, &slot.to_le_bytes());
        gpu.write(
            PROMPT + PROMPT_LENGTH as u64,
            &(prompt.len() as u32).to_le_bytes(),
        );
        gpu.write(PROMPT + PROMPT_TOKENS as u64, prompt.as_bytes());
        gpu.launch("embed_prompt", 1, DIMENSION, &[7, WEIGHTS, PROMPT, HIDDEN]);
    }
    for (index, (slot, _)) in members.iter().enumerate() {
        gpu.write(
            BATCH + (BATCH_SLOTS + 4 * index) as u64,
            &slot.to_le_bytes(),
        );
    }
    let expected =
        members.map(|(_, prompt)| reference::answer(&weights, prompt.as_bytes(), TOKENS));

    let label = 0x1_0000_0002_u64;
    gpu.write(BATCH, &label.to_le_bytes());
    let blocks = members.len();
    for step in 0..TOKENS {
        gpu.launch(
            "gemv",
            blocks,
            VOCABULARY,
            &[BATCH, WEIGHTS, BATCH, HIDDEN, LOGITS],
        );
        gpu.launch("softmax", blocks, 1, &[BATCH, LOGITS, PROBABILITIES]);
        gpu.launch("arg_max", blocks, 1, &[BATCH, PROBABILITIES, ANSWER]);
        gpu.launch(
            "embed_next",
            blocks,
            DIMENSION,
            &[BATCH, WEIGHTS, BATCH, ANSWER, HIDDEN],
        );
        assert_eq!(u64::from_le_bytes(gpu.read(ANSWER)), label);
        for (index, expected) in expected.iter().enumerate() {
            let token = u32::from_le_bytes(gpu.read(ANSWER + (ANSWER_TOKENS + 4 * index) as u64));
            let probability =
                f32::from_le_bytes(gpu.read(ANSWER + (ANSWER_PROBABILITIES + 4 * index) as u64));
            let expected = expected[step];
            assert_eq!(
                token,
                u32::from(expected.byte),
                "member {index}, step {step}"
            );
            assert!(
                (probability - expected.probability).abs() < 1e-4,
                "{probability} {expected:?}"
            );
        }
    }
}

/// One kernel: its parameters, its instructions, where its labels lead, and how many registers it has.
#[derive(Default)]
struct Kernel {
    parameters: Vec<String>,
    code: Vec<Instruction>,
    labels: HashMap<String, usize>,
    registers: HashMap<String, usize>,
}

struct Instruction {
    /// The register that must be true, else the instruction is skipped.
    guard: Option<usize>,
    operation: String,
    operands: Vec<Operand>,
}

enum Operand {
    Register(usize),
    /// The bits of a number.
    Immediate(u64),
    ThreadX,
    BlockX,
    /// A register and an offset.
    Address(usize, u64),
    /// A parameter or a label.
    Name(String),
}

struct Interpreter {
    kernels: HashMap<String, Kernel>,
    memory: Vec<u8>,
}

impl Interpreter {
    fn new(text: &str) -> Self {
        let mut kernels = HashMap::new();
        let lines = text
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default().trim());
        let mut current: Option<(String, Kernel)> = None;
        for line in lines.filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix(".visible .entry ") {
                current = Some((rest.trim_end_matches('(').to_owned(), Kernel::default()));
            } else if let Some((_, kernel)) = &mut current {
                kernel.line(line);
            }
            if line == "}" {
                kernels.extend(current.take());
            }
        }
        Self {
            kernels,
            memory: vec![0; MEMORY_BYTES],
        }
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        self.memory[address as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn read<const N: usize>(&self, address: u64) -> [u8; N] {
        self.memory[address as usize..][..N]
            .try_into()
            .expect("as long as asked for")
    }

    fn launch(&mut self, name: &str, blocks: usize, threads: usize, arguments: &[u64]) {
        let kernel = self
            .kernels
            .remove(name)
            .unwrap_or_else(|| panic!("no kernel {name}"));
        assert_eq!(kernel.parameters.len(), arguments.len(), "{name}");
        for block in 0..blocks as u64 {
            for thread in 0..threads as u64 {
                self.thread(&kernel, block, thread, arguments);
            }
        }
        self.kernels.insert(name.to_owned(), kernel);
    }

    fn thread(&mut self, kernel: &Kernel, block: u64, thread: u64, arguments: &[u64]) {
        let mut registers = vec![0_u64; kernel.registers.len()];
        let mut at = 0;
        loop {
            let Instruction {
                guard,
                operation,
                operands,
            } = &kernel.code[at];
            at += 1;
            if guard.is_some_and(|register| registers[register] == 0) {
                continue;
            }
            let bits = |index: usize| match &operands[index] {
                Operand::Register(register) => registers[*register],
                Operand::Immediate(bits) => *bits,
                Operand::ThreadX => thread,
                Operand::BlockX => block,
                Operand::Address(register, offset) => registers[*register] + offset,
                Operand::Name(name) => {
                    let index = kernel
                        .parameters
                        .iter()
                        .position(|parameter| parameter == name);
                    arguments[index.unwrap_or_else(|| panic!("no parameter {name}"))]
                }
            };
            let word = |index: usize| bits(index) as u32;
            let float = |index: usize| f32::from_bits(word(index));
            let of_float = |number: f32| u64::from(number.to_bits());
            let result = match operation.as_str() {
                "ret" => return,
                "bra" => {
                    let Operand::Name(label) = &operands[0] else {
                        panic!("bra without a label")
                    };
                    at = kernel.labels[label];
                    continue;
                }
                "st.global.u64" => {
                    self.write(bits(0), &bits(1).to_le_bytes());
                    continue;
                }
                "st.global.u32" | "st.global.f32" => {
                    self.write(bits(0), &word(1).to_le_bytes());
                    continue;
                }
                "ld.global.u64" => u64::from_le_bytes(self.read(bits(1))),
                "ld.global.u32" | "ld.global.f32" => u32::from_le_bytes(self.read(bits(1))).into(),
                "ld.global.u8" => u8::from_le_bytes(self.read(bits(1))).into(),
                "ld.param.u64" | "cvta.to.global.u64" | "mov.u64" => bits(1),
                "mov.u32" | "mov.f32" => word(1).into(),
                "add.u64" => bits(1).wrapping_add(bits(2)),
                "add.u32" => word(1).wrapping_add(word(2)).into(),
                "mad.lo.u32" => word(1).wrapping_mul(word(2)).wrapping_add(word(3)).into(),
                "mul.wide.u32" => u64::from(word(1)) * u64::from(word(2)),
                "add.rn.f32" => of_float(float(1) + float(2)),
                "sub.rn.f32" => of_float(float(1) - float(2)),
                "mul.rn.f32" => of_float(float(1) * float(2)),
                "div.rn.f32" => of_float(float(1) / float(2)),
                "max.f32" => of_float(float(1).max(float(2))),
                "cvt.rmi.f32.f32" => of_float(float(1).floor()),
                "ex2.approx.f32" => of_float(float(1).exp2()),
                "setp.ge.u32" => (word(1) >= word(2)).into(),
                "setp.lt.u32" => (word(1) < word(2)).into(),
                "setp.gt.f32" => (float(1) > float(2)).into(),
                "selp.f32" | "selp.b32" => bits(if bits(3) == 0 { 2 } else { 1 }),
                other => panic!("the interpreter does not know {other}"),
            };
            let Operand::Register(to) = operands[0] else {
                panic!("{operation} to no register")
            };
            registers[to] = result;
        }
    }
}

impl Kernel {
    fn line(&mut self, line: &str) {
        if let Some(parameter) = line.strip_prefix(".param .u64 ") {
            self.parameters
                .push(parameter.trim_end_matches(',').to_owned());
        } else if let Some(registers) = line.strip_prefix(".reg ") {
            let names = registers.split_once(' ').expect("a type, then names").1;
            for name in names.trim_end_matches(';').split(',') {
                let number = self.registers.len();
                self.registers.insert(name.trim().to_owned(), number);
            }
        } else if let Some(label) = line.strip_suffix(':') {
            self.labels.insert(label.to_owned(), self.code.len());
        } else if let Some(instruction) = line.strip_suffix(';') {
            self.instruction(instruction);
        }
    }

    fn instruction(&mut self, text: &str) {
        let (guard, text) = match text.strip_prefix('@') {
            Some(guarded) => {
                let (guard, rest) = guarded
                    .split_once(' ')
                    .expect("a guard, then an instruction");
                (Some(self.registers[guard]), rest)
            }
            None => (None, text),
        };
        let (operation, operands) = text.split_once(' ').unwrap_or((text, ""));
        let operands = operands
            .split(',')
            .map(str::trim)
            .filter(|operand| !operand.is_empty());
        let instruction = Instruction {
            guard,
            operation: operation.to_owned(),
            operands: operands.map(|operand| self.operand(operand)).collect(),
        };
        self.code.push(instruction);
    }

    fn operand(&self, text: &str) -> Operand {
        if let Some(inside) = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
        {
            let (base, offset) = inside.split_once('+').unwrap_or((inside, "0"));
            return match self.registers.get(base) {
                Some(register) => Operand::Address(*register, offset.parse().expect("a number")),
                None => Operand::Name(base.to_owned()),
            };
        }
        match text {
            "%tid.x" => Operand::ThreadX,
            "%ctaid.x" => Operand::BlockX,
            _ => match (self.registers.get(text), text.strip_prefix("0f")) {
                (Some(register), _) => Operand::Register(*register),
                (None, Some(digits)) => {
                    Operand::Immediate(u64::from_str_radix(digits, 16).expect("eight digits"))
                }
                (None, None) => text
                    .parse()
                    .map_or_else(|_| Operand::Name(text.to_owned()), Operand::Immediate),
            },
        }
    }
}
