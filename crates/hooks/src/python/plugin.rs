//! Plugins: directories with `plugin.yaml` and `__init__.py`, and packages that are installed with the interpreter.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::yaml;

/// What the configuration says about plugins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Those that are used, by key or name.
    pub enabled: Vec<String>,
    /// Those that are not, whatever else is said.
    pub disabled: Vec<String>,
}

/// One plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Plugin {
    /// Names it among all plugins: its name, or `<category>/<directory>`.
    pub key: String,
    /// What its author calls it.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// Where it is from.
    pub origin: Origin,
    /// Whether it is used.
    pub status: Status,
    /// What its context shows it: what `plugin.yaml` says, with `key`, `name` and `path`.
    pub(super) manifest: Map<String, Value>,
}

/// Where a plugin is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// `plugins/` of the home.
    Home,
    /// `.petasos/plugins/` of the working directory.
    Project,
    /// A package that is installed with the interpreter.
    Installed,
}

/// Whether a plugin is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is.
    Enabled,
    /// The configuration switches it off.
    Disabled,
    /// The configuration does not switch it on.
    NotEnabled,
    /// It cannot be.
    Broken(String),
}

impl Plugin {
    /// All plugins in the order in which they are loaded: those of the home, those of the project, those that are
    /// enabled and in neither. Of two with one key the later counts.
    pub fn discover(home: &Path, project: Option<&Path>, selection: &Selection) -> Vec<Plugin> {
        let mut all: Vec<Plugin> = Vec::new();
        let found = in_directory(home, Origin::Home);
        let found = found
            .into_iter()
            .chain(project.map(|path| in_directory(path, Origin::Project)).unwrap_or_default());
        for mut plugin in found {
            if plugin.status == Status::Enabled {
                plugin.status = selection.status(&plugin);
            }
            all.retain(|known| known.key != plugin.key);
            all.push(plugin);
        }
        for name in &selection.enabled {
            let is_known = all.iter().any(|plugin| plugin.is_called(name));
            if !is_known && !selection.disabled.contains(name) {
                let places = [project.map(|path| (path, Origin::Project)), Some((home, Origin::Home))];
                let mut places = places.into_iter().flatten();
                let meant =
                    places.find_map(|(path, origin)| Some((origin, mistake(&path.join(name), &all)?)));
                all.push(match meant {
                    Some((origin, problem)) => bare(name, origin, Status::Broken(problem)),
                    // Only the interpreter knows whether it is there.
                    None => bare(name, Origin::Installed, Status::Enabled),
                });
            }
        }
        all
    }

    /// Whether it is used.
    pub fn is_enabled(&self) -> bool {
        self.status == Status::Enabled
    }

    /// Whether this is its key or its name.
    pub fn is_called(&self, name: &str) -> bool {
        self.key == name || self.name == name
    }
}

impl Selection {
    fn status(&self, plugin: &Plugin) -> Status {
        let names = |list: &[String]| list.iter().any(|name| plugin.is_called(name));
        if names(&self.disabled) {
            Status::Disabled
        } else if names(&self.enabled) {
            Status::Enabled
        } else {
            Status::NotEnabled
        }
    }
}

/// The plugins of a directory and, one level down, of its categories.
fn in_directory(directory: &Path, origin: Origin) -> Vec<Plugin> {
    let mut plugins = Vec::new();
    for path in yaml::directories(directory) {
        if let Some(plugin) = at(&path, None, origin) {
            plugins.push(plugin);
            continue;
        }
        let category = yaml::name(&path);
        let inner = yaml::directories(&path).into_iter();
        plugins.extend(inner.filter_map(|path| at(&path, Some(&category), origin)));
    }
    plugins
}

/// The file that makes a directory a plugin, if it is there.
fn manifest_file(directory: &Path) -> Option<PathBuf> {
    ["plugin.yaml", "plugin.yml"].map(|name| directory.join(name)).into_iter().find(|file| file.is_file())
}

/// Why a directory is not the plugin that it is enabled as. None if it is not there, or if it is a category: then a
/// package of the same name is meant.
fn mistake(directory: &Path, known: &[Plugin]) -> Option<String> {
    let Some(file) = manifest_file(directory) else {
        let is_category = yaml::directories(directory).iter().any(|inner| manifest_file(inner).is_some());
        let is_empty = directory.is_dir() && !is_category;
        return is_empty.then(|| "its directory has no plugin.yaml".to_owned());
    };
    let key = at(directory, None, Origin::Home)?.key;
    Some(if known.iter().any(|plugin| plugin.key == key) {
        format!("{} in its directory gives it another name; enable {key} instead", yaml::name(&file))
    } else {
        "its directory is too deep; move it to plugins/<name> or plugins/<category>/<name>".to_owned()
    })
}

/// The plugin of a directory, if it is one.
fn at(path: &Path, category: Option<&str>, origin: Origin) -> Option<Plugin> {
    let file = manifest_file(path)?;
    let directory = yaml::name(path);
    let (mut manifest, status) = match yaml::object(&file) {
        Ok(manifest) => (manifest, Status::Enabled),
        Err(problem) => (Map::new(), Status::Broken(format!("{}: {problem}", yaml::name(&file)))),
    };
    let text = |name: &str| match manifest.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let name = text("name").filter(|name| !name.is_empty()).unwrap_or_else(|| directory.clone());
    let key = category.map_or_else(|| name.clone(), |category| format!("{category}/{directory}"));
    let (version, description) =
        (text("version").unwrap_or_default(), text("description").unwrap_or_default());
    let shown = json!({ "key": key, "name": name, "version": version, "path": path, "source": "user" });
    manifest.extend(shown.as_object().cloned().unwrap_or_default());
    Some(Plugin { key, name, version, description, origin, status, manifest })
}

/// A plugin of which only the name is known.
fn bare(name: &str, origin: Origin, status: Status) -> Plugin {
    let manifest = json!({ "key": name, "name": name, "entry_point": name, "source": "entrypoint" });
    Plugin {
        key: name.to_owned(),
        name: name.to_owned(),
        version: String::new(),
        description: String::new(),
        origin,
        status,
        manifest: manifest.as_object().cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn write(place: &TempDir, path: &str, text: &str) {
        let path = place.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn plugins_are_found_in_order_and_gated_by_the_configuration() {
        let home = tempfile::tempdir().unwrap();
        let write = |path, text| write(&home, path, text);
        write("zeta/plugin.yaml", "name: zeta\nversion: 1.5\n");
        write("alpha/plugin.yml", "name: first\ndescription: It is.\n");
        write("tools/inner/plugin.yaml", "name: inner\n");
        write("broken/plugin.yaml", "name: [\n");
        write("nothing/readme.md", "");
        write("file", "");
        let selection = Selection {
            enabled: ["first", "tools/inner", "packaged", "zeta", "nothing"].map(str::to_owned).into(),
            disabled: vec!["zeta".into()],
        };
        let all = Plugin::discover(home.path(), None, &selection);
        let brief: Vec<_> = all.iter().map(|plugin| (plugin.key.as_str(), plugin.is_enabled())).collect();
        let expected = [
            ("first", true),
            ("broken", false),
            ("tools/inner", true),
            ("zeta", false),
            ("packaged", true),
            ("nothing", false),
        ];
        assert_eq!(brief, expected);
        assert!(matches!(&all[5].status, Status::Broken(problem) if problem.contains("no plugin.yaml")));
        assert!(matches!(&all[1].status, Status::Broken(problem) if problem.starts_with("plugin.yaml: ")));
        assert_eq!((all[3].version.as_str(), &all[3].status), ("1.5", &Status::Disabled));
        assert_eq!(all[4].origin, Origin::Installed);
        let none = Plugin::discover(home.path(), None, &Selection::default());
        assert!(none.iter().all(|plugin| !plugin.is_enabled()), "nothing runs unless it is switched on");
    }

    #[test]
    fn a_name_that_no_plugin_has_is_a_package_unless_it_is_a_directory_by_mistake() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(&home, "alpha/plugin.yml", "name: first\n");
        write(&home, "tools/inner/plugin.yaml", "name: inner\n");
        write(&home, "tools/more/deep/plugin.yaml", "name: deep\n");
        write(&project, "bare/__init__.py", "");
        let enabled = ["alpha", "tools", "tools/more/deep", "bare"].map(str::to_owned).into();
        let selection = Selection { enabled, disabled: Vec::new() };
        let all = Plugin::discover(home.path(), Some(project.path()), &selection);
        let found = |key: &str| {
            let plugin = all.iter().find(|plugin| plugin.key == key).unwrap();
            (plugin.origin, plugin.status.clone())
        };
        let broken = |problem: &str| Status::Broken(problem.to_owned());
        let renamed = "plugin.yml in its directory gives it another name; enable first instead";
        assert_eq!(found("alpha"), (Origin::Home, broken(renamed)));
        assert_eq!(found("tools"), (Origin::Installed, Status::Enabled), "a category has no plugin.yaml");
        let deep = "its directory is too deep; move it to plugins/<name> or plugins/<category>/<name>";
        assert_eq!(found("tools/more/deep"), (Origin::Home, broken(deep)));
        assert_eq!(found("bare"), (Origin::Project, broken("its directory has no plugin.yaml")));
    }
}
