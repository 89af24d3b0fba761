//! Tests of the budget arithmetic.

use proptest::prelude::*;

use super::*;

fn limits(tokens: u64) -> Limits {
    Limits {
        tokens: Some(tokens),
        ..Limits::default()
    }
}

#[test]
fn a_ceiling_waits_for_what_is_reserved_and_is_refused_for_what_is_booked() {
    let mut account = Account::new(limits(1000));
    let call = Ceiling {
        tokens: Some(400),
        ..Ceiling::default()
    };
    for _ in 0..2 {
        assert_eq!(account.admit(call), Admission::Fits);
        account.reserve(call);
    }
    // 200 are free, 1000 may become so.
    assert_eq!(account.admit(call), Admission::Waits);
    account.settle(
        call,
        &Usage {
            tokens: Some(100),
            ..Usage::default()
        },
    );
    assert_eq!(account.admit(call), Admission::Fits);
    account.reserve(call);
    account.settle(call, &Usage::default());
    account.settle(call, &Usage::default());
    let Admission::Refused(over) = account.admit(call) else {
        panic!("900 of 1000 are booked");
    };
    assert_eq!((over.dimension, over.left), (Dimension::Tokens, 100));
}

/// Without a ceiling a call starts while anything is free, and is refused where nothing is left.
#[test]
fn a_call_without_a_ceiling_starts_while_anything_is_free() {
    let mut account = Account::new(limits(100));
    let (open, all) = (
        Ceiling::default(),
        Ceiling {
            tokens: Some(100),
            ..Ceiling::default()
        },
    );
    assert_eq!(account.admit(open), Admission::Fits);
    account.reserve(all);
    assert_eq!(account.admit(open), Admission::Waits);
    account.settle(all, &Usage::default());
    assert!(matches!(account.admit(open), Admission::Refused(over) if over.needed.is_none()));
    assert_eq!(account.admit(Ceiling::nothing()), Admission::Fits);
}

/// Unknown is not zero: nobody can say any more that the limit holds.
#[test]
fn after_an_unknown_amount_a_limited_dimension_admits_nothing_that_could_use_more() {
    let unlimited = Limits::default();
    let open = Ceiling {
        steps: 1,
        ..Ceiling::default()
    };
    for lost in [false, true] {
        let mut account = Account::new(limits(1_000_000));
        assert_eq!(account.admit(open), Admission::Fits);
        account.reserve(open);
        if lost {
            account.give_up(open, &Usage::default());
        } else {
            account.settle(open, &Usage::default());
        }
        let small = Ceiling {
            tokens: Some(1),
            ..open
        };
        for next in [open, small] {
            let Admission::Refused(over) = account.admit(next) else {
                panic!("an unknown amount is used");
            };
            assert_eq!((over.dimension, over.unknown), (Dimension::Tokens, 1));
            let words = over.words("it");
            assert!(
                words.contains("(1000000) can't be kept: 1 attempt used"),
                "{words}"
            );
        }
        // What can't use any, and what isn't limited, goes on.
        assert_eq!(account.admit(Ceiling::time(Some(1))), Admission::Fits);
        account.limits = unlimited;
        assert_eq!(account.admit(open), Admission::Fits);
    }
}

#[test]
fn a_refusal_says_what_is_missing_in_units_for_people() {
    let over = |dimension, needed, left, limit| OverBudget {
        dimension,
        needed,
        left,
        limit,
        unknown: 0,
    };
    for (over, words) in [
        (
            over(Dimension::Steps, Some(1), 0, 3),
            "the budget of steps is used up: nothing is left of 3",
        ),
        (
            over(Dimension::Time, Some(60_000_000), 500_000, 61_500_000),
            "the budget of time has 500ms left of 1m1s500ms, and t1/keep/1 may need 1m",
        ),
        (
            over(Dimension::Money, None, 0, 12_500_000),
            "the budget of money is used up: nothing is left of 12.50",
        ),
    ] {
        assert_eq!(over.words("t1/keep/1"), words);
    }
    // A record without the field is one where nothing was unknown, and is written so again.
    let json = r#"{"dimension":"steps","needed":1,"left":0,"limit":3}"#;
    let read: OverBudget = serde_json::from_str(json).unwrap();
    assert_eq!(read, over(Dimension::Steps, Some(1), 0, 3));
    assert_eq!(serde_json::to_string(&read).unwrap(), json);
}

#[test]
fn changed_limits_are_said() {
    let before = Limits {
        steps: Some(1),
        time_us: Some(60_000_000),
        ..Limits::default()
    };
    let after = Limits {
        steps: Some(100),
        money_micros: Some(500_000),
        ..Limits::default()
    };
    let words = [
        "steps 1 -> 100",
        "time 1m -> no limit",
        "money no limit -> 0.50",
    ];
    assert_eq!(before.changes(after), words);
    assert!(before.changes(before).is_empty());
}

#[test]
fn limits_below_what_is_spent_admit_nothing_and_underflow_nowhere() {
    let mut account = Account::new(limits(100));
    let call = Ceiling {
        tokens: Some(60),
        ..Ceiling::default()
    };
    account.reserve(call);
    account.settle(call, &Usage::default());
    account.limits = limits(10);
    assert!(matches!(account.admit(call), Admission::Refused(over) if over.left == 0));
    assert_eq!(account.left(Dimension::Tokens), Some(0));
    account.limits = limits(120);
    assert_eq!(account.admit(call), Admission::Fits);
}

#[test]
fn what_is_taken_back_leaves_no_trace() {
    let mut account = Account::new(Limits::default());
    let before = account;
    let ceiling = Ceiling {
        steps: 1,
        money_micros: Some(7),
        ..Ceiling::default()
    };
    account.reserve(ceiling);
    let booked = account.give_up(ceiling, &Usage::default());
    assert_eq!((account.spent.money_micros, account.unknown.tokens), (7, 1));
    account.take_back(booked);
    assert_eq!(account, before);
}

#[test]
fn the_wall_clock_is_a_limit_that_nothing_declares() {
    let mut account = Account::new(Limits {
        wall_us: Some(10),
        ..Limits::default()
    });
    account.pass(9);
    assert_eq!(account.admit(Ceiling::default()), Admission::Fits);
    assert_eq!(account.out_of_time(), None);
    account.pass(1);
    let over = account.out_of_time().unwrap();
    assert_eq!(account.admit(Ceiling::nothing()), Admission::Refused(over));
}

#[test]
fn unknown_usage_is_booked_at_the_ceiling_or_counted_as_unknown() {
    let mut account = Account::new(limits(1000));
    let declared = Ceiling {
        tokens: Some(400),
        ..Ceiling::default()
    };
    account.reserve(declared);
    account.settle(declared, &Usage::default());
    assert_eq!((account.spent.tokens, account.unknown.tokens), (400, 0));
    account.reserve(Ceiling::default());
    account.settle(Ceiling::default(), &Usage::default());
    assert_eq!((account.spent.tokens, account.unknown.tokens), (400, 1));
}

#[test]
fn a_childs_limits_are_its_own_under_its_parents_ceiling() {
    let ceiling = Ceiling {
        steps: 1,
        time_us: Some(50),
        tokens: Some(300),
        money_micros: None,
    };
    let own = Limits {
        steps: Some(9),
        tokens: Some(500),
        money_micros: Some(4),
        ..Limits::default()
    };
    let under = Limits {
        steps: Some(9),
        time_us: Some(50),
        tokens: Some(300),
        money_micros: Some(4),
        wall_us: Some(50),
    };
    assert_eq!(own.under(ceiling), under);
    assert_eq!(limits(100).under(ceiling).tokens, Some(100));
    assert_eq!(limits(100).under(Ceiling::default()), limits(100));
}

#[test]
fn an_undeclared_ceiling_is_all_that_is_free() {
    let mut account = Account::new(limits(1000));
    account.reserve(Ceiling {
        tokens: Some(400),
        ..Ceiling::default()
    });
    let rest = account.with_the_rest(Ceiling::default());
    assert_eq!((rest.tokens, rest.money_micros), (Some(600), None));
}

#[test]
fn what_is_unknown_of_a_child_is_unknown_to_its_parent() {
    let mut account = Account::new(Limits::default());
    account.settle(
        Ceiling::default(),
        &Usage {
            tokens: Some(3),
            ..Usage::default()
        },
    );
    let usage = account.usage();
    assert_eq!((usage.tokens, usage.money_micros), (Some(3), None));
}

proptest! {
    /// Where every call declares its ceiling and keeps to it, the limit is never passed.
    #[test]
    fn reserved_calls_never_overspend(calls in prop::collection::vec((0u64..500, 0u64..500), 0..60)) {
        let mut account = Account::new(limits(2000));
        let mut open = Vec::new();
        for (index, (ceiling, used)) in calls.into_iter().enumerate() {
            let ceiling = Ceiling { tokens: Some(ceiling), ..Ceiling::default() };
            if account.admit(ceiling) == Admission::Fits {
                account.reserve(ceiling);
                open.push((ceiling, used));
            }
            if index % 3 == 0 && let Some((ceiling, used)) = open.pop() {
                let used = used.min(ceiling.tokens.unwrap_or(0));
                account.settle(ceiling, &Usage { tokens: Some(used), ..Usage::default() });
            }
            prop_assert!(account.spent.plus(account.reserved).tokens <= 2000);
        }
    }
}
