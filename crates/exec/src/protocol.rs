//! What engine and supervisor say to each other, over one socket.
//!
//! Which fence a supervisor is to prepare is told before, by the **fence byte**
//! with which the fork server is asked for it. The engine sends one **request**
//! (the command), then at most a few **stop** bytes; the end of its stream means
//! that it is dead. The supervisor sends
//! one **report** when all is over. Both are the same
//! binary, so the format needs no compatibility, only a version to refuse a
//! mismatched override. It is written by hand: the supervisor should be ready
//! within microseconds.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use crate::command::{Environment, Isolation};
use crate::finished::{Containment, Leftover};

/// Changed whenever anything below changes.
const VERSION: u8 = 3;

/// A stop byte: SIGTERM, the grace, SIGKILL.
pub(crate) const STOP_GENTLY: u8 = b'g';
/// A stop byte: SIGKILL.
pub(crate) const STOP_AT_ONCE: u8 = b'k';

/// How the fork server is told what fence its copy is to prepare.
pub(crate) fn fence_byte(isolation: Isolation) -> u8 {
    match isolation {
        Isolation::Auto => b'a',
        Isolation::WithoutNamespace => b'w',
        Isolation::SubreaperOnly => b's',
    }
}

/// The isolation such a byte means; the strongest, where it means nothing.
pub(crate) fn isolation_of(fence_byte: u8) -> Isolation {
    match fence_byte {
        b'w' => Isolation::WithoutNamespace,
        b's' => Isolation::SubreaperOnly,
        _ => Isolation::Auto,
    }
}

/// No honest message is longer: Linux itself refuses larger argument lists.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// What the supervisor is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) argv: Vec<OsString>,
    /// What is started where the system refuses to start that; empty where nothing is.
    pub(crate) otherwise: Vec<OsString>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Environment,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) grace: Duration,
    pub(crate) linger: Duration,
    pub(crate) read_only: Vec<PathBuf>,
}

/// The fence a command runs in, and why no stronger one was had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) containment: Containment,
    pub(crate) note: Option<String>,
}

/// What the supervisor tells: one report, at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) fence: Fence,
    pub(crate) news: News,
}

/// What there is to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The command couldn't be run.
    NotStarted { reason: String },
    /// The command and its family are gone.
    Finished(Outcome),
    /// What was to lead the family ended before it could tell.
    LeaderLost { detail: String },
}

/// How all ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) wall: Duration,
    pub(crate) cpu_user: Duration,
    pub(crate) cpu_system: Duration,
    pub(crate) max_rss_bytes: u64,
    pub(crate) leftovers: Vec<Leftover>,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    Stopped,
}

impl Request {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.byte(VERSION);
        out.count(self.argv.len());
        self.argv.iter().for_each(|word| out.text(word));
        out.count(self.otherwise.len());
        self.otherwise.iter().for_each(|word| out.text(word));
        out.text(self.cwd.as_os_str());
        out.byte(u8::from(self.env.inherit));
        out.count(self.env.set.len());
        for (name, value) in &self.env.set {
            out.text(name);
            out.text(value);
        }
        out.count(self.env.remove.len());
        self.env.remove.iter().for_each(|name| out.text(name));
        out.byte(u8::from(self.time_limit.is_some()));
        out.duration(self.time_limit.unwrap_or_default());
        out.duration(self.grace);
        out.duration(self.linger);
        out.count(self.read_only.len());
        self.read_only
            .iter()
            .for_each(|path| out.text(path.as_os_str()));
        out.message()
    }

    /// Reads the body of a message; `None` if it is damaged or of another
    /// version.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let mut input = Reader(body);
        if input.byte()? != VERSION {
            return None;
        }
        let argv = input.list(Reader::text)?;
        let otherwise = input.list(Reader::text)?;
        let cwd = PathBuf::from(input.text()?);
        let inherit = input.byte()? != 0;
        let set = input.list(|input| Some((input.text()?, input.text()?)))?;
        let remove = input.list(Reader::text)?;
        let limited = input.byte()? != 0;
        let time_limit = input.duration()?;
        Some(Self {
            argv,
            otherwise,
            cwd,
            env: Environment {
                inherit,
                set: set.into_iter().collect(),
                remove: remove.into_iter().collect(),
            },
            time_limit: limited.then_some(time_limit),
            grace: input.duration()?,
            linger: input.duration()?,
            read_only: input.list(|input| input.text().map(PathBuf::from))?,
        })
    }
}

impl Report {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.byte(match self.fence.containment {
            Containment::PidNamespace => 0,
            Containment::SubreaperScoped => 1,
            Containment::Subreaper => 2,
        });
        out.byte(u8::from(self.fence.note.is_some()));
        out.text(OsStr::new(self.fence.note.as_deref().unwrap_or_default()));
        match &self.news {
            News::NotStarted { reason } => {
                out.byte(0);
                out.text(OsStr::new(reason));
            }
            News::Finished(outcome) => {
                out.byte(1);
                outcome.encode(&mut out);
            }
            News::LeaderLost { detail } => {
                out.byte(2);
                out.text(OsStr::new(detail));
            }
        }
        out.message()
    }

    /// Reads the body of a message; `None` if it is damaged.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let mut input = Reader(body);
        let containment = match input.byte()? {
            0 => Containment::PidNamespace,
            1 => Containment::SubreaperScoped,
            2 => Containment::Subreaper,
            _ => return None,
        };
        let noted = input.byte()? != 0;
        let note = input.string()?;
        let news = match input.byte()? {
            0 => News::NotStarted {
                reason: input.string()?,
            },
            1 => News::Finished(Outcome::decode(&mut input)?),
            2 => News::LeaderLost {
                detail: input.string()?,
            },
            _ => return None,
        };
        let note = noted.then_some(note);
        Some(Self {
            fence: Fence { containment, note },
            news,
        })
    }
}

impl Outcome {
    fn encode(&self, out: &mut Writer) {
        let (kind, code) = match self.end {
            End::Exited(code) => (0, code),
            End::Signaled(signal) => (1, signal),
            End::TimedOut => (2, 0),
            End::Stopped => (3, 0),
        };
        out.byte(kind);
        out.number(u64::from(code as u32));
        out.duration(self.wall);
        out.duration(self.cpu_user);
        out.duration(self.cpu_system);
        out.number(self.max_rss_bytes);
        out.count(self.leftovers.len());
        for leftover in &self.leftovers {
            out.number(u64::from(leftover.pid));
            out.text(OsStr::new(&leftover.name));
            out.byte(u8::from(leftover.ended));
        }
    }

    fn decode(input: &mut Reader<'_>) -> Option<Self> {
        let kind = input.byte()?;
        let code = input.number()? as u32 as i32;
        Some(Self {
            end: match kind {
                0 => End::Exited(code),
                1 => End::Signaled(code),
                2 => End::TimedOut,
                3 => End::Stopped,
                _ => return None,
            },
            wall: input.duration()?,
            cpu_user: input.duration()?,
            cpu_system: input.duration()?,
            max_rss_bytes: input.number()?,
            leftovers: input.list(|input| {
                Some(Leftover {
                    pid: u32::try_from(input.number()?).ok()?,
                    name: input.string()?,
                    ended: input.byte()? != 0,
                })
            })?,
        })
    }
}

/// Takes whole messages off the front of what has arrived so far. `None`:
/// more is needed. `Err`: not one of ours.
pub(crate) fn split_message(arrived: &[u8]) -> Result<Option<(&[u8], usize)>, OversizedMessage> {
    let Some((length, rest)) = arrived.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_MESSAGE_BYTES {
        return Err(OversizedMessage);
    }
    Ok(rest.get(..length).map(|body| (body, 4 + length)))
}

/// A message that can't be one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OversizedMessage;

/// Writes a message: its length in four bytes, then its body.
struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Self {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(&[0; 4]);
        Self(bytes)
    }

    fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn count(&mut self, value: usize) {
        self.number(value as u64);
    }

    fn duration(&mut self, value: Duration) {
        // Half a millennium in nanoseconds is as good as for ever.
        self.number(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX));
    }

    fn text(&mut self, value: &OsStr) {
        self.count(value.len());
        self.0.extend_from_slice(value.as_bytes());
    }

    fn message(mut self) -> Vec<u8> {
        let length = (self.0.len() - 4) as u32;
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

/// Reads a body from its front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (value, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*value)
    }

    fn number(&mut self) -> Option<u64> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*value))
    }

    fn duration(&mut self) -> Option<Duration> {
        self.number().map(Duration::from_nanos)
    }

    fn text(&mut self) -> Option<OsString> {
        let length = usize::try_from(self.number()?).ok()?;
        let (value, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(OsString::from_vec(value.to_vec()))
    }

    fn string(&mut self) -> Option<String> {
        Some(self.text()?.to_string_lossy().into_owned())
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        // Not reserved beforehand: a damaged count must cost nothing.
        let count = self.number()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(message: &[u8]) -> &[u8] {
        let (body, length) = split_message(message).unwrap().unwrap();
        assert_eq!(length, message.len());
        body
    }

    fn any_text() -> impl Strategy<Value = OsString> {
        prop::collection::vec(any::<u8>(), 0..12).prop_map(OsString::from_vec)
    }

    fn any_duration() -> impl Strategy<Value = Duration> {
        any::<u64>().prop_map(Duration::from_nanos)
    }

    prop_compose! {
        fn any_request()(
            argv in prop::collection::vec(any_text(), 0..5),
            otherwise in prop::collection::vec(any_text(), 0..5),
            cwd in any_text(),
            inherit in any::<bool>(),
            set in prop::collection::btree_map(any_text(), any_text(), 0..5),
            remove in prop::collection::btree_set(any_text(), 0..5),
            time_limit in prop::option::of(any_duration()),
            grace in any_duration(),
            linger in any_duration(),
            read_only in prop::collection::vec(any_text().prop_map(PathBuf::from), 0..3),
        ) -> Request {
            Request {
                argv,
                otherwise,
                cwd: cwd.into(),
                env: Environment { inherit, set, remove },
                time_limit,
                grace,
                linger,
                read_only,
            }
        }
    }

    fn any_report() -> impl Strategy<Value = Report> {
        let outcome =
            (
                prop_oneof![
                    any::<i32>().prop_map(End::Exited),
                    any::<i32>().prop_map(End::Signaled),
                    Just(End::TimedOut),
                    Just(End::Stopped),
                ],
                any_duration(),
                any_duration(),
                any_duration(),
                any::<u64>(),
                prop::collection::vec(
                    (any::<u32>(), ".{0,8}", any::<bool>())
                        .prop_map(|(pid, name, ended)| Leftover { pid, name, ended }),
                    0..4,
                ),
            )
                .prop_map(
                    |(end, wall, cpu_user, cpu_system, max_rss_bytes, leftovers)| Outcome {
                        end,
                        wall,
                        cpu_user,
                        cpu_system,
                        max_rss_bytes,
                        leftovers,
                    },
                );
        let news = prop_oneof![
            ".{0,20}".prop_map(|reason| News::NotStarted { reason }),
            ".{0,20}".prop_map(|detail| News::LeaderLost { detail }),
            outcome.prop_map(News::Finished),
        ];
        let containment = prop::sample::select(vec![
            Containment::PidNamespace,
            Containment::SubreaperScoped,
            Containment::Subreaper,
        ]);
        (containment, prop::option::of(".{0,8}"), news).prop_map(|(containment, note, news)| {
            Report {
                fence: Fence { containment, note },
                news,
            }
        })
    }

    proptest! {
        #[test]
        fn requests_come_back_as_they_were(request in any_request()) {
            let message = request.encode();
            prop_assert_eq!(Request::decode(body(&message)), Some(request));
        }

        #[test]
        fn reports_come_back_as_they_were(report in any_report()) {
            let message = report.encode();
            prop_assert_eq!(Report::decode(body(&message)), Some(report));
        }

        #[test]
        fn cut_requests_are_refused(request in any_request(), cut in any::<prop::sample::Index>()) {
            let message = request.encode();
            let whole = body(&message);
            prop_assert_eq!(Request::decode(&whole[..cut.index(whole.len())]), None);
        }

        #[test]
        fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::decode(&bytes);
            let _ = Report::decode(&bytes);
            let _ = split_message(&bytes);
        }
    }

    #[test]
    fn half_a_message_waits_for_the_rest_and_a_huge_one_is_refused() {
        let message = Report {
            fence: Fence {
                containment: Containment::Subreaper,
                note: None,
            },
            news: News::NotStarted { reason: "x".into() },
        }
        .encode();
        assert_eq!(split_message(&message[..message.len() - 1]), Ok(None));
        assert_eq!(split_message(&message[..3]), Ok(None));
        assert_eq!(
            split_message(&u32::MAX.to_le_bytes()),
            Err(OversizedMessage)
        );
    }
}
