//! `lineage service`: what the users of a service felt, and what its devices did meanwhile.

mod json;
mod text;

use std::path::Path;

use lineage_core::service::{
    CollectiveSkew, Collectives, DeviceFigures, Devices, Objective, TokenFigures, TokenOptions,
    Tokens,
};

use crate::arguments::Service;
use crate::input::{self, Batches, Refusal};
use crate::terminal::Terminal;
use crate::{BAD, FINE};

/// The figures of a file.
struct Figures {
    recorder: String,
    tokens: TokenFigures,
    devices: Vec<DeviceFigures>,
    collectives: Vec<CollectiveSkew>,
    /// What could not be kept of devices and collectives.
    not_kept: u64,
}

/// Prints the figures of each file. One that cannot be read does not keep the others from it.
pub(crate) fn run(arguments: &Service, terminal: &mut Terminal) -> u8 {
    let mut code = FINE;
    for (number, file) in arguments.files.iter().enumerate() {
        match figures(file, arguments) {
            Ok(figures) => {
                let text = if arguments.json {
                    json::object(file, &figures)
                } else {
                    let between = if number > 0 { "\n" } else { "" };
                    format!("{between}{}", text::text(file, &figures, terminal.width()))
                };
                terminal.print(&text);
            }
            Err(refusal) => {
                if arguments.json {
                    terminal.print(&json::refused(file, &refusal));
                }
                terminal.complain(&refusal.to_string());
                code = BAD;
            }
        }
    }
    code
}

fn figures(file: &Path, arguments: &Service) -> Result<Figures, Refusal> {
    let mut objective = Objective::default();
    objective.first_token_ns = arguments.first_token;
    objective.between_tokens_ns = arguments.between_tokens;
    let mut options = TokenOptions::default();
    options.warm_up_ns = arguments.warm_up;
    options.objective = objective;
    let mut tokens = Tokens::new(options);
    let mut devices = Devices::default();
    let mut collectives = Collectives::default();
    let batches = Batches {
        file,
        format: input::format(file)?,
        candidates: &arguments.candidates,
        partial: arguments.partial,
        clock_error_ns: arguments.clock_error_ns,
    };
    let recorder = batches.each(|observations, rows| {
        for observation in observations {
            tokens.observe(observation);
            devices.observe(observation);
        }
        for row in rows {
            tokens.row(row);
            devices.row(row);
            collectives.row(row);
        }
    })?;
    Ok(Figures {
        recorder,
        tokens: tokens.figures(),
        devices: devices.figures(),
        not_kept: devices.not_kept() + collectives.not_kept(),
        collectives: collectives.figures(),
    })
}
