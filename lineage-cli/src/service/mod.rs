//! `lineage service`: what the users of a service felt, and what its devices did meanwhile.

mod json;
mod text;

use std::path::Path;

use lineage_core::service::{
    CollectiveSkew, Collectives, DeviceFigures, Devices, Objective, TokenFigures, TokenOptions,
    Tokens,
};

use crate::arguments::Service;
use crate::files;
use crate::input::{self, About, Refusal};
use crate::terminal::Terminal;

/// The figures of a file.
struct Figures {
    about: About,
    tokens: TokenFigures,
    devices: Vec<DeviceFigures>,
    collectives: Vec<CollectiveSkew>,
    /// What could not be kept of devices and collectives.
    not_kept: u64,
}

/// Prints the figures of each file. One that cannot be read does not keep the others from it.
pub(crate) fn run(arguments: &Service, terminal: &mut Terminal) -> u8 {
    let schema = arguments.json.then_some(json::SCHEMA);
    files::each(&arguments.files, schema, terminal, |file, width| {
        let figures = figures(file, arguments)?;
        Ok(if arguments.json {
            json::object(file, &figures)
        } else {
            text::text(file, &figures, width)
        })
    })
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
    let about = arguments
        .reading
        .each_part(file, input::format(file)?, |observations, rows| {
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
        about,
        tokens: tokens.figures(),
        devices: devices.figures(),
        not_kept: devices.not_kept() + collectives.not_kept(),
        collectives: collectives.figures(),
    })
}
