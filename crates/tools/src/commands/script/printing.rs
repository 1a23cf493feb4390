//! What programs print, and the files that it goes to.

use std::rc::Rc;

use super::{Here, Read, Script, known_lines};
use crate::commands::flow::{Flow, Origin};
use crate::commands::simple::Simple;
use crate::commands::{decoding, printed, programs, searches};

impl Script {
    /// What a program prints that runs no other.
    pub(super) fn prints(&mut self, simple: &Simple, reads: Option<&Flow>, here: &Here<'_>) -> Read<Flow> {
        let unknown = || Flow::unknown(Origin::default());
        let prints = match simple.name() {
            "which" | "type" => here.known(format!("{}\n", simple.operands().last().unwrap_or_default())),
            "command" if simple.has('v', "") || simple.has('V', "") => {
                here.known(format!("{}\n", simple.operands().last().unwrap_or_default()))
            }
            "echo" | "printf" => here.known(printed::by(simple, self.left)),
            "cat" if simple.operands().next().is_some() => {
                let mut prints = Flow::default();
                let of_file = || Flow::unknown(Origin { content: true, ..Origin::default() });
                for path in simple.operands() {
                    prints.append(self.copied(path)?.unwrap_or_else(of_file));
                }
                return Ok(prints);
            }
            "cat" | "tee" => reads.cloned().unwrap_or_else(unknown),
            "realpath" | "readlink" if simple.operands().next().is_some() => {
                here.known(format!("{}\n", simple.operands().last().unwrap_or_default()))
            }
            "find" | "gfind" | "ls" if searches::listed(simple).is_some() => {
                let place = searches::listed(simple).unwrap_or_default();
                let listed = Flow::unknown(programs::origin(simple));
                Flow { text: format!("{place}\n{}", listed.text), ..listed }
            }
            _ if programs::is_silent(simple) => Flow::default(),
            _ => match decoding::printed(simple, reads).or_else(|| programs::printed_by_code(simple)) {
                // Nobody can read it before, so that it asks even if it is harmless.
                Some(text) => {
                    let decoded = !programs::speaks_another_language(simple.name());
                    let unknown = Flow::unknown(Origin { decoded, ..programs::origin(simple) });
                    Flow { text: format!("{text}\n{}", unknown.text), ..unknown }
                }
                None => {
                    let through = reads.map(|flow| flow.origin).unwrap_or_default();
                    let mut prints = Flow::unknown(programs::origin(simple) | through);
                    if let Some(reads) = reads.filter(|_| programs::passes_lines_on(simple.name())) {
                        prints.text.push_str(&known_lines(&reads.text));
                    }
                    prints
                }
            },
        };
        self.charge(prints.len())?;
        Ok(prints)
    }

    /// Puts what was printed into a file, or into the command that reads it.
    pub(super) fn write(&mut self, path: &str, flow: &Flow, here: &Here<'_>) -> Read<()> {
        self.charge(flow.len())?;
        match self.files.take_reader(path) {
            Some(reader) => {
                self.add(&reader, here.inside(Some(Rc::new(flow.clone()))))?;
            }
            None => self.files.append(path, flow.clone()),
        }
        Ok(())
    }

    /// What is in a file, if the command has written it.
    pub(super) fn copied(&mut self, path: &str) -> Read<Option<Flow>> {
        let file = self.files.get(path).cloned();
        self.charge(file.as_ref().map_or(0, Flow::len))?;
        Ok(file)
    }
}
