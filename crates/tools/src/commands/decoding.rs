//! What programs make of a known text that decode it.

use super::flow::Flow;
use super::lexer::has_unknown;
use super::simple::Simple;

/// What a program prints that decodes what it reads, if that is known.
pub(super) fn printed(simple: &Simple, reads: Option<&Flow>) -> Option<String> {
    let text = reads.map(|flow| flow.text.as_str()).filter(|text| !has_unknown(text))?;
    match simple.name() {
        "base64" if simple.has('d', "decode") || simple.has('D', "") => base64(text),
        "openssl" if simple.says("base64") && simple.has('d', "") => base64(text),
        "xxd" if simple.has('r', "revert") => hexadecimal(text),
        "rev" => Some(text.lines().map(|line| line.chars().rev().collect::<String>() + "\n").collect()),
        "tr" => translated(simple, text),
        _ => None,
    }
}

fn base64(text: &str) -> Option<String> {
    const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for letter in text.chars().filter(|letter| !letter.is_whitespace() && *letter != '=') {
        bits = bits << 6 | u32::try_from(LETTERS.find(letter)?).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    String::from_utf8(bytes).ok()
}

fn hexadecimal(text: &str) -> Option<String> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let bytes = digits.chunks_exact(2).map(|pair| match pair {
        [high, low] => u8::try_from(high * 16 + low).ok(),
        _ => None,
    });
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

/// `tr from to`, with ranges.
fn translated(simple: &Simple, text: &str) -> Option<String> {
    let (from, to) = (ranges(simple.operand(0)), ranges(simple.operand(1)));
    if simple.has('d', "delete") {
        return Some(text.chars().filter(|letter| !from.contains(letter)).collect());
    }
    let last = *to.last()?;
    let translate = |letter: char| match from.iter().position(|other| *other == letter) {
        Some(at) => to.get(at).copied().unwrap_or(last),
        None => letter,
    };
    Some(text.chars().map(translate).collect())
}

fn ranges(set: &str) -> Vec<char> {
    let letters: Vec<char> = set.chars().collect();
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(&letter) = letters.get(at) {
        match (letters.get(at + 1), letters.get(at + 2)) {
            (Some('-'), Some(&to)) => {
                all.extend((letter..=to).take(256));
                at += 3;
            }
            _ => {
                all.push(letter);
                at += 1;
            }
        }
    }
    all
}
