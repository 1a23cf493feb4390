//! Checks of [`SkillStore`](crate::SkillStore).

use petasos_core::memory::{SkillFile, UserScope};

use super::make::{at, scope, session_of};
use crate::{Error, SkillWrite, Store};

fn anna() -> UserScope {
    scope("default", "helper", "anna")
}

fn write(name: &str, expected_revision: Option<u64>, content: &str) -> SkillWrite {
    SkillWrite {
        name: name.into(),
        expected_revision,
        description: format!("About {content}"),
        content: content.into(),
        files: Vec::new(),
        at: at(expected_revision.map_or(0, |revision| i64::try_from(revision).unwrap())),
    }
}

pub async fn a_skill_is_read_as_it_was_given(store: &impl Store) {
    assert_eq!(store.skill(&anna(), "brew").await.unwrap(), None);
    let mut first = write("brew", None, "tea\n\u{0}ü");
    first.files =
        vec![("scripts/b.sh".into(), Some("écho".into())), ("assets/a".into(), Some(String::new()))];
    store.write_skill(&anna(), first).await.unwrap();
    store.write_skill(&anna(), write("arrange", None, "cups")).await.unwrap();
    let skill = store.skill(&anna(), "brew").await.unwrap().unwrap();
    assert_eq!((skill.revision, skill.content.as_str()), (1, "tea\n\u{0}ü"));
    assert_eq!((skill.summary.created_at, skill.summary.updated_at), (at(0), at(0)));
    let files = [
        SkillFile { path: "assets/a".into(), bytes: 0 },
        SkillFile { path: "scripts/b.sh".into(), bytes: 5 },
    ];
    assert_eq!(skill.files, files);
    let content = store.skill_file(&anna(), "brew", "scripts/b.sh").await.unwrap();
    assert_eq!(content.as_deref(), Some("écho"));
    assert_eq!(store.skill_file(&anna(), "brew", "scripts/c.sh").await.unwrap(), None);
    assert_eq!(store.skill_file(&anna(), "arrange", "scripts/b.sh").await.unwrap(), None);
    let listed = store.skills(&anna()).await.unwrap();
    assert_eq!(listed.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), ["arrange", "brew"]);
    assert_eq!(listed[1], skill.summary);
}

pub async fn a_change_of_a_skill_is_whole(store: &impl Store) {
    let mut first = write("brew", None, "tea");
    first.files = vec![("assets/a".into(), Some("a".into())), ("assets/b".into(), Some("b".into()))];
    store.write_skill(&anna(), first).await.unwrap();
    let mut second = write("brew", Some(1), "coffee");
    second.files = vec![("assets/a".into(), None), ("assets/c".into(), Some("c".into()))];
    store.write_skill(&anna(), second).await.unwrap();
    let skill = store.skill(&anna(), "brew").await.unwrap().unwrap();
    assert_eq!((skill.revision, skill.content.as_str()), (2, "coffee"));
    assert_eq!(skill.summary.description, "About coffee");
    assert_eq!((skill.summary.created_at, skill.summary.updated_at), (at(0), at(1)));
    assert_eq!(
        skill.files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
        ["assets/b", "assets/c"]
    );
}

pub async fn a_stale_writer_of_a_skill_is_refused(store: &impl Store) {
    let missing = store.write_skill(&anna(), write("brew", Some(1), "tea")).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    store.write_skill(&anna(), write("brew", None, "tea")).await.unwrap();
    let twice = store.write_skill(&anna(), write("brew", None, "tea")).await;
    assert!(matches!(twice, Err(Error::AlreadyExists { .. })), "{twice:?}");
    let mut stale = write("brew", Some(2), "coffee");
    stale.files = vec![("assets/a".into(), Some("a".into()))];
    let stale = store.write_skill(&anna(), stale).await;
    assert!(matches!(stale, Err(Error::Stale { expected: 2, actual: 1, .. })), "{stale:?}");
    let skill = store.skill(&anna(), "brew").await.unwrap().unwrap();
    assert_eq!((skill.revision, skill.content.as_str(), skill.files.len()), (1, "tea", 0));
}

pub async fn skills_belong_to_one_scope(store: &impl Store) {
    store.create_session(session_of("one", "anna")).await.unwrap();
    store.write_skill(&anna(), write("brew", None, "tea")).await.unwrap();
    store.delete_session(&anna().tenant, &"one".parse().unwrap()).await.unwrap();
    assert_eq!(store.skills(&anna()).await.unwrap().len(), 1, "it outlives the session");
    for (tenant, agent, user) in
        [("default", "helper", "ben"), ("default", "writer", "anna"), ("other", "helper", "anna")]
    {
        let other = scope(tenant, agent, user);
        assert!(store.skills(&other).await.unwrap().is_empty());
        assert_eq!(store.skill(&other, "brew").await.unwrap(), None);
        assert!(!store.delete_skill(&other, "brew").await.unwrap());
        store.write_skill(&other, write("brew", None, "cocoa")).await.unwrap();
    }
    assert_eq!(store.skill(&anna(), "brew").await.unwrap().unwrap().content, "tea");
}

pub async fn a_deleted_skill_takes_its_files_with_it(store: &impl Store) {
    let mut first = write("brew", None, "tea");
    first.files = vec![("assets/a".into(), Some("a".into()))];
    store.write_skill(&anna(), first).await.unwrap();
    assert!(store.delete_skill(&anna(), "brew").await.unwrap());
    assert!(!store.delete_skill(&anna(), "brew").await.unwrap());
    store.write_skill(&anna(), write("brew", None, "tea")).await.unwrap();
    assert!(store.skill(&anna(), "brew").await.unwrap().unwrap().files.is_empty());
}
