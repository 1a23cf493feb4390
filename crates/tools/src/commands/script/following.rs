//! Follows a program to those that it runs in turn: as its words, as a script, or as a function of the command.

use std::rc::Rc;

use super::{Around, Here, MAX_WORDS, Read, Script, TOO_MANY_WORDS, is_all_unknown, known_lines};
use crate::commands::environment;
use crate::commands::flow::{Flow, Origin};
use crate::commands::lexer::has_unknown;
use crate::commands::paths;
use crate::commands::programs::{self, Inner, Source};
use crate::commands::rules::{self, UNSEEN_CODE};
use crate::commands::simple::Simple;

impl Script {
    /// Adds a program, those that it runs in turn, and what it passes on to a shell. Returns what they print.
    pub(super) fn program(
        &mut self,
        words: Vec<String>,
        first: Simple,
        reads: Option<Rc<Flow>>,
        here: &Here<'_>,
    ) -> Read<Flow> {
        let mut prints = Flow::default();
        let (mut first, mut by) = (Some(first), here.by.clone());
        let mut programs = vec![(words, reads, by.take())];
        while let Some((words, reads, by)) = programs.pop() {
            if words.len() > MAX_WORDS {
                return Err(TOO_MANY_WORDS);
            }
            self.charge(words.iter().map(|word| word.len() + 1).sum())?;
            let Simple { writes, opens, environment, .. } = first.take().unwrap_or_default();
            let mut simple = Simple { opens, environment, by, ..Simple::new(words, writes) };
            simple.directory = self.directory.clone();
            simple.input = reads.clone();
            if simple.words.iter().any(|word| has_unknown(word)) {
                simple.within = here.unknown;
            }
            if let (Some("xargs" | "parallel"), Some(reads)) = (simple.by.as_deref(), &reads) {
                simple.within = simple.within | Origin { content: false, ..reads.origin };
            }
            // What `xargs` reads are words of the programs inside, which are given them already.
            let reads = reads.filter(|_| !matches!(simple.by.as_deref(), Some("xargs" | "parallel")));
            let mut inner = self.inner(&mut simple, reads.as_deref());
            inner.scripts.extend(environment::scripts(&simple.environment).into_iter().map(Into::into));
            if matches!(
                simple.name(),
                "export" | "declare" | "typeset" | "readonly" | "env" | "sudo" | "doas"
            ) {
                let kept = environment::scripts(simple.arguments());
                inner.scripts.extend(kept.into_iter().filter(|text| !is_all_unknown(text)).map(Into::into));
            }
            self.unpack(&simple, reads.as_deref());
            self.change_directory(&simple);
            // A function is what it does, whatever its name.
            if !self.functions.contains_key(&simple.path) {
                self.push(simple.clone())?;
            }
            let runs_others = !inner.scripts.is_empty() || !inner.programs.is_empty();
            if !runs_others || programs::speaks_another_language(simple.name()) {
                let printed = self.prints(&simple, reads.as_deref(), here)?;
                for path in programs::writes_to(&simple) {
                    self.write(&path, &printed, here)?;
                }
                prints.append(printed);
            }
            let by = programs::runs_by_itself(&simple);
            // A script that is read from the input leaves nothing for the programs in it.
            let reads = reads.filter(|_| programs::source(&simple) != Source::Input);
            for script in inner.scripts {
                let around =
                    Around { by: by.clone(), arguments: script.arguments, ..here.inside(reads.clone()) };
                prints.append(self.add(&script.text, around)?);
            }
            prints.append(self.call(&simple, reads.clone(), here)?);
            // What is read is read by the programs inside, for `xargs` as words.
            for words in inner.programs {
                self.charge(words.iter().map(|word| word.len() + 1).sum())?;
                programs.push((words, simple.input.clone(), by.clone()));
            }
        }
        Ok(prints)
    }

    /// What a program runs. Where that comes from, if it is not known, is noted.
    fn inner(&self, simple: &mut Simple, reads: Option<&Flow>) -> Inner {
        let (mut inner, source) = (Inner::default(), programs::source(simple));
        let flow = match &source {
            Source::Input => reads,
            Source::File(path) => self.files.get(path),
            Source::Itself if simple.path.contains('/') => self.files.get(&simple.path),
            Source::Itself => None,
        };
        programs::run_by(simple, reads, &self.files, &mut inner);
        if inner.scripts.iter().any(|script| has_unknown(&script.text)) || inner.has_unknown_code {
            simple.runs = simple.runs | simple.within;
        }
        let is_explained = simple.runs.downloaded || simple.runs.decoded;
        if inner.has_unknown_code && !is_explained {
            inner.findings.push(UNSEEN_CODE);
        }
        // Of a script of which nothing is known it only matters where it comes from.
        let scripts = inner.scripts.len();
        inner.scripts.retain(|script| !is_all_unknown(&script.text));
        let is_unknown = inner.scripts.len() < scripts || is_all_unknown(&simple.path);
        if inner.scripts.len() < scripts && !is_explained {
            inner.findings.push(rules::UNKNOWN_COMMAND);
        }
        // `while read x; do $x; done`: a command that nobody knows may be a line of what is read there.
        if let Some(flow) = reads.filter(|flow| is_unknown && !is_all_unknown(&flow.text)) {
            inner.scripts.push(known_lines(&flow.text).into());
        }
        if is_explained {
            inner.scripts.iter_mut().for_each(|script| script.text = known_lines(&script.text));
        }
        if let Some(flow) = flow {
            if has_unknown(&flow.text) {
                // A dump is decoded to be read.
                let decoded = flow.origin.decoded && !programs::is_database(simple.name());
                simple.runs = simple.runs | Origin { decoded, ..flow.origin };
            }
            // A file is a script like any other; what another program makes is not known.
            let is_made =
                flow.unknown || !flow.is_file && !flow.text.trim().is_empty() && is_all_unknown(&flow.text);
            let is_stream = match &source {
                Source::Input => true,
                // `bash <(…)`. Settings are printed to be read that way.
                Source::File(path) => path.starts_with("/dev/fd/") && !flow.origin.settings,
                Source::Itself => false,
            };
            simple.runs.piped |= is_made && is_stream && !programs::takes_data(simple, flow);
            if !is_all_unknown(&flow.text) {
                programs::run_text(simple, &source, &known_lines(&flow.text), &mut inner);
            }
        }
        if programs::installs(simple)
            .any(|path| self.files.get(path).is_some_and(|file| file.origin.downloaded))
        {
            simple.runs.downloaded = true;
        }
        simple.runs.downloaded |= flow.is_none() && self.is_unpacked(simple, &source);
        simple.findings.append(&mut inner.findings);
        simple.writes.append(&mut inner.writes);
        simple.opens.append(&mut inner.opens);
        inner
    }

    /// Reads the function that a program's name calls, with its arguments.
    fn call(&mut self, simple: &Simple, reads: Option<Rc<Flow>>, here: &Here<'_>) -> Read<Flow> {
        let name = simple.name().to_owned();
        let text = self.functions.get(&simple.path).or_else(|| self.aliases.get(&simple.path));
        let Some(text) = text.filter(|_| !self.calling.contains(&name)).cloned() else {
            return Ok(Flow::default());
        };
        self.calling.push(name);
        let prints = self.add(&text, Around { arguments: Some(simple.words.clone()), ..here.inside(reads) });
        self.calling.pop();
        prints
    }

    /// Notes that an archive which was downloaded is unpacked.
    fn unpack(&mut self, simple: &Simple, reads: Option<&Flow>) {
        let is_download = |flow: &Flow| flow.origin.downloaded;
        let archive = |word: &String| {
            let path = word.rsplit('=').next().unwrap_or(word);
            self.files.get(path).is_some_and(is_download)
        };
        if programs::unpacks(simple)
            && (reads.is_some_and(is_download) || simple.arguments().iter().any(archive))
        {
            self.unpacked = Some(self.directory.clone());
        }
    }

    /// Whether a program may have come out of a downloaded archive. One beside the archive was likely there before, unless
    /// its name is one that archives have.
    fn is_unpacked(&self, simple: &Simple, source: &Source) -> bool {
        let Some(directory) = &self.unpacked else { return false };
        let (path, by_name) = match source {
            Source::File(path) => (path.as_str(), true),
            Source::Itself if simple.path.contains('/') => (simple.path.as_str(), false),
            Source::Itself | Source::Input => return false,
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.split('.').next().unwrap_or(name);
        let is_beside =
            by_name && !path.trim_start_matches("./").contains('/') && *directory == self.directory;
        let is_elsewhere =
            path.starts_with('/') && !["/tmp/", "/var/tmp/"].iter().any(|tmp| path.starts_with(tmp));
        let installs = ["install", "setup", "configure", "bootstrap"].contains(&stem);
        !is_elsewhere && (!is_beside || installs)
    }

    /// Follows `cd`.
    fn change_directory(&mut self, simple: &Simple) {
        if matches!(simple.name(), "cd" | "pushd" | "chdir") {
            let to = simple.operands().next().unwrap_or("~");
            self.directory = paths::joined(self.directory.as_deref(), to);
        } else if simple.name() == "popd" {
            self.directory = None;
        }
    }
}
