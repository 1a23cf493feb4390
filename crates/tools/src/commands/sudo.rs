//! Which calls of `sudo` a command makes, as far as its text tells.
//!
//! A person allows a command as it is shown. When the command runs, each call of `sudo` in it may be made once, with the
//! arguments that the text gives it. An argument that only a running shell knows (`$1`, `*.txt`) stands for any
//! number of arguments of that form.

use super::lexer::{has_unknown, is_unknown};
use super::simple::Simple;
use super::wildcard;

/// Programs that add arguments which nobody has seen to what they run.
const ADD_ARGUMENTS: [&str; 3] = ["find", "parallel", "xargs"];

/// The calls that a command makes. A call that nobody could see whole may not be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SudoCalls(Vec<Option<Vec<Word>>>);

/// One argument of a call, as the text gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Exactly(String),
    /// Any number of arguments that fit this pattern.
    Like(String),
}

impl SudoCalls {
    /// The calls among the programs of a command.
    pub(super) fn of(programs: &[Simple]) -> Self {
        let calls = programs.iter().filter(|program| program.name() == "sudo");
        let words = |program: &Simple| {
            let adds = program.by.as_deref().is_some_and(|by| ADD_ARGUMENTS.contains(&by));
            (!adds).then(|| program.arguments().iter().map(|word| Word::new(word)).collect())
        };
        SudoCalls(calls.map(words).collect())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes a call with these arguments out, if there is one.
    pub(crate) fn take(&mut self, arguments: &[String]) -> bool {
        let is_it = |words: &Option<Vec<Word>>| words.as_ref().is_some_and(|words| fits(words, arguments));
        match self.0.iter().position(is_it) {
            Some(position) => {
                self.0.remove(position);
                true
            }
            None => false,
        }
    }
}

impl Word {
    fn new(word: &str) -> Self {
        let known = !has_unknown(word) && !word.contains(['*', '?', '[']) && !word.starts_with('~');
        if known {
            return Word::Exactly(word.to_owned());
        }
        // A set of characters ends where only the shell knows, so that anything may follow it.
        let before_set = word.split('[').next().unwrap_or_default();
        let open = if before_set.len() < word.len() { "*" } else { "" };
        let mut pattern =
            before_set.replace(|character| is_unknown(character) || character == '?', "*") + open;
        if let Some(rest) = pattern.strip_prefix('~') {
            pattern = format!("*{rest}");
        }
        Word::Like(pattern)
    }
}

/// Whether the arguments are what the words describe. Each argument is looked at once for each word.
fn fits(words: &[Word], arguments: &[String]) -> bool {
    // Which words may come next: all that follow a pattern which stands for nothing may as well.
    let mut next = vec![false; words.len() + 1];
    let reach = |next: &mut Vec<bool>, mut at: usize| loop {
        if let Some(reached) = next.get_mut(at) {
            *reached = true;
        }
        match words.get(at) {
            Some(Word::Like(_)) => at += 1,
            _ => return,
        }
    };
    reach(&mut next, 0);
    for argument in arguments {
        let mut after = vec![false; words.len() + 1];
        for (at, word) in words.iter().enumerate().filter(|(at, _)| next.get(*at) == Some(&true)) {
            match word {
                Word::Exactly(word) if word == argument => reach(&mut after, at + 1),
                Word::Like(pattern) if wildcard::matches(pattern, argument) => reach(&mut after, at),
                _ => {}
            }
        }
        next = after;
    }
    next.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use crate::commands::{Approvals, judge};

    /// Which of the calls, each written as words, may be made one after the other.
    #[track_caller]
    fn check(command: &str, calls: &[&str], expected: &[bool]) {
        let mut allowed = judge(command, &Approvals::default()).sudo_calls;
        let made = calls.iter().map(|call| {
            let arguments: Vec<String> = call.split(' ').map(str::to_owned).collect();
            allowed.take(&arguments)
        });
        assert_eq!(made.collect::<Vec<_>>(), expected, "{command}");
    }

    #[test]
    fn a_call_may_be_made_once_as_it_is_written() {
        check("sudo ls -l /root", &["ls -l /root", "ls -l /root"], &[true, false]);
        check("sudo ls", &["ls -l", "sh", "ls"], &[false, false, true]);
        check("sudo -u ada id; cd x && sudo 'make' install", &["make install", "-u ada id"], &[true, true]);
        check("echo sudo ls", &["ls"], &[false]);
        check("bash -c 'sudo ls'", &["ls"], &[true]);
    }

    #[test]
    fn unknown_arguments_stand_for_what_fits_them() {
        check("sudo rm -- *.txt", &["rm -- /etc/passwd", "rm -- a.txt b.txt"], &[false, true]);
        check("sudo rm $1", &["sh", "rm a b"], &[false, true]);
        check(
            "sudo chown ada ~/x[ab] here",
            &["chown ada /home/ada/xa there", "chown ada /home/ada/xa here"],
            &[false, true],
        );
        // Nobody has seen what other programs add.
        check("ls | xargs sudo rm -f", &["rm -f a b"], &[false]);
    }
}
