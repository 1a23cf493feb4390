//! What a result must say about files and directories that were not searched, or not to their end.

/// How many of a kind are named.
const MAX_NAMED: usize = 5;

/// Names of some, and how many there are.
#[derive(Default)]
struct Named {
    some: Vec<String>,
    count: usize,
}

impl Named {
    fn add(&mut self, name: impl FnOnce() -> String) {
        if self.some.len() < MAX_NAMED {
            self.some.push(name());
        }
        self.count += 1;
    }

    /// The names after `about`, if there are any.
    fn sentence(&self, about: &str) -> Option<String> {
        let more = match self.count - self.some.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (self.count > 0).then(|| format!("{about}: {}{more}.", self.some.join(", ")))
    }
}

/// All that a result has to say.
#[derive(Default)]
pub(super) struct Notes {
    out_of_time: bool,
    too_many_entries: bool,
    not_read_to_end: Named,
    unreadable_directories: Named,
    too_deep: Named,
    cut_directories: Named,
    ignore_files: Named,
}

impl Notes {
    /// The time was up.
    pub(super) fn out_of_time(&mut self) {
        self.out_of_time = true;
    }

    /// There is more than a search looks at.
    pub(super) fn too_many_entries(&mut self) {
        self.too_many_entries = true;
    }

    /// A file that was not searched to its end.
    pub(super) fn not_read_to_end(&mut self, path: impl FnOnce() -> String) {
        self.not_read_to_end.add(path);
    }

    /// A directory that cannot be read.
    pub(super) fn unreadable_directory(&mut self, path: impl FnOnce() -> String) {
        self.unreadable_directories.add(path);
    }

    /// A directory whose path is too long.
    pub(super) fn too_deep(&mut self, path: impl FnOnce() -> String) {
        self.too_deep.add(path);
    }

    /// A directory with so many entries that only some were looked at.
    pub(super) fn cut_directory(&mut self, path: impl FnOnce() -> String) {
        self.cut_directories.add(path);
    }

    /// An ignore file that does not count, or not whole.
    pub(super) fn ignore_file_not_applied(&mut self, described: String) {
        self.ignore_files.add(|| described);
    }

    /// Everything in sentences, if there is anything.
    pub(super) fn text(&self) -> Option<String> {
        let time = "The search took too long and is not complete; search a smaller part.";
        let entries = "There are too many files and the search is not complete; search a smaller part.";
        let sentences = [
            self.out_of_time.then(|| time.to_owned()),
            self.too_many_entries.then(|| entries.to_owned()),
            self.unreadable_directories.sentence("Directories that cannot be read"),
            self.too_deep.sentence("Not searched, because the path is too long"),
            self.cut_directories.sentence("Only some entries were searched, because there are too many"),
            self.ignore_files.sentence("Ignore files that were not applied"),
            self.not_read_to_end
                .sentence("Not searched to the end, because a line is too long or cannot be read"),
        ];
        let sentences: Vec<String> = sentences.into_iter().flatten().collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}
