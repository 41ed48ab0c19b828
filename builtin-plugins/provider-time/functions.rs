//! Functions that return the parts of timestamps and durations.

use monoform_sdk::cty::{Number, Type, Value};
use monoform_sdk::{Any, Arguments, Function, FunctionError, Parameter};

use crate::moment::Moment;

const NUMBERS: [&str; 10] = [
    "year", "year_day", "day", "month", "weekday", "hour", "minute", "second", "iso_year", "iso_week",
];

/// Returns the type of a timestamp's parts, which have one additional attribute.
fn parts_type(name: &'static str, ty: Type) -> Type {
    let numbers = NUMBERS.iter().map(|name| (*name, Type::Number));
    let names = [("month_name", Type::String), ("weekday_name", Type::String), (name, ty)];
    Type::object(numbers.chain(names))
}

/// Builds the object with the parts of a timestamp and one additional attribute.
fn parts(moment: Moment, name: &'static str, value: Value) -> Any {
    let date = moment.date();
    let iso = date.iso_week_date();
    // As in Go, Sunday is weekday 0.
    let weekday = i64::from(moment.weekday().to_sunday_zero_offset());
    let numbers: [i64; 10] = [
        moment.year(),
        date.day_of_year().into(),
        moment.day(),
        moment.month(),
        weekday,
        moment.hour(),
        moment.minute(),
        moment.second(),
        iso.year().into(),
        iso.week().into(),
    ];
    let numbers = NUMBERS.into_iter().zip(numbers.map(Value::number));
    let names = [
        ("month_name", Value::string(date.strftime("%B").to_string())),
        ("weekday_name", Value::string(date.strftime("%A").to_string())),
        (name, value),
    ];
    Any(Value::object(numbers.chain(names)))
}

pub(crate) fn rfc3339_parse() -> Function {
    Function::new(
        "Parses a timestamp in the format of RFC 3339.",
        "Parses a timestamp in the format of RFC 3339 and returns an object with its parts: of the date and the time of day as \
         they \
         are at its own offset from UTC, and the seconds since 1970.",
        vec![Parameter::new::<String>("timestamp", "A timestamp in the format of RFC 3339.")],
        |arguments: Arguments<'_>| {
            let text: String = arguments.get(0)?;
            let moment = Moment::parse(&text)
                .map_err(|_| FunctionError::argument(0, format!("{text:?} is not a valid RFC3339 timestamp")))?;
            Ok(parts(moment, "unix", moment.unix().into()))
        },
    )
    .returning(parts_type("unix", Type::Number))
}

pub(crate) fn unix_timestamp_parse() -> Function {
    Function::new(
        "Parses a timestamp in seconds since 1970.",
        "Converts a number of seconds since 1970 in UTC to an object with the parts of that timestamp in UTC.",
        vec![Parameter::new::<i64>(
            "unix_timestamp",
            "Seconds since 1970 began in UTC.",
        )],
        |arguments: Arguments<'_>| {
            let seconds: i64 = arguments.get(0)?;
            let moment = Moment::from_unix(seconds).ok_or_else(|| {
                FunctionError::argument(0, format!("{seconds} is no timestamp in the years from -9999 to 9999"))
            })?;
            Ok(parts(moment, "rfc3339", Value::string(moment.to_string())))
        },
    )
    .returning(parts_type("rfc3339", Type::String))
}

pub(crate) fn duration_parse() -> Function {
    Function::new(
        "Gives a duration in each unit.",
        "Takes a duration such as 1h30m or -1.5s, made of numbers with the units ns, us, ms, s, m and h, and gives an \
         object with its length in each unit. Hours, minutes and seconds may have fractions; in the smaller units parts are \
         dropped.",
        vec![Parameter::new::<String>("duration", "A duration such as 1h30m.")],
        |arguments: Arguments<'_>| {
            let text: String = arguments.get(0)?;
            let nanoseconds = gotext::duration::nanoseconds(&text)
                .map_err(|_| FunctionError::argument(0, format!("{text:?} is not a valid duration string")))?;
            // Whole units and their fraction are divided separately: `nanoseconds as f64` would lose digits before the division.
            let fractional = |unit: i64| {
                let float = (nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / unit as f64;
                Value::number(Number::from_f64(float).unwrap_or_else(|| 0_i64.into()))
            };
            Ok(Any(Value::object([
                ("hours", fractional(3_600_000_000_000)),
                ("minutes", fractional(60_000_000_000)),
                ("seconds", fractional(1_000_000_000)),
                ("milliseconds", Value::number(nanoseconds / 1_000_000)),
                ("microseconds", Value::number(nanoseconds / 1_000)),
                ("nanoseconds", Value::number(nanoseconds)),
            ])))
        },
    )
    .returning(Type::object(
        ["hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"].map(|unit| (unit, Type::Number)),
    ))
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Value;
    use monoform_sdk_testing::Harness;

    fn check(function: &str, argument: Value, expected: &[(&str, Value)]) {
        let result = Harness::new(crate::provider()).call(function, &[argument]).unwrap();
        for (name, value) in expected {
            assert_eq!(result.get(name), Some(value), "{function} {name}");
        }
    }

    #[test]
    fn moments_have_their_parts() {
        check(
            "rfc3339_parse",
            "2023-07-25T23:43:16Z".into(),
            &[
                ("year_day", 206.into()),
                ("weekday", 2.into()),
                ("weekday_name", "Tuesday".into()),
                ("month_name", "July".into()),
                ("iso_week", 30.into()),
                ("unix", 1_690_328_596.into()),
            ],
        );
        check(
            "rfc3339_parse",
            "1996-12-19T16:39:57-08:00".into(),
            &[
                ("hour", 16.into()),
                ("year_day", 354.into()),
                ("iso_week", 51.into()),
                ("unix", 851_042_397.into()),
            ],
        );
        check(
            "unix_timestamp_parse",
            (-1).into(),
            &[
                ("rfc3339", "1969-12-31T23:59:59Z".into()),
                ("iso_year", 1970.into()),
                ("weekday_name", "Wednesday".into()),
            ],
        );
    }

    #[test]
    fn durations_are_given_in_each_unit() {
        let float = |n: f64| Value::number(monoform_sdk::cty::Number::from_f64(n).unwrap());
        check(
            "duration_parse",
            "1us".into(),
            &[
                ("seconds", float(1e-6)),
                ("milliseconds", 0.into()),
                ("microseconds", 1.into()),
                ("nanoseconds", 1000.into()),
            ],
        );
        check(
            "duration_parse",
            "-1h30m".into(),
            &[("hours", float(-1.5)), ("minutes", (-90).into())],
        );
    }

    #[test]
    fn what_cannot_be_read_is_an_error_of_the_argument() {
        let harness = Harness::new(crate::provider());
        for (function, argument, text) in [
            ("rfc3339_parse", "x", "\"x\" is not a valid RFC3339 timestamp"),
            ("duration_parse", "x", "\"x\" is not a valid duration string"),
        ] {
            let error = harness.call(function, &[argument.into()]).unwrap_err();
            assert_eq!((error.text.as_str(), error.argument), (text, Some(0)));
        }
        assert!(harness.call("unix_timestamp_parse", &[i64::MAX.into()]).is_err());
    }
}
