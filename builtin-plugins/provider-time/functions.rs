//! Functions that return the parts of timestamps and durations.

use monoform_sdk::cty::Number;
use monoform_sdk::schema::computed;
use monoform_sdk::{Arguments, Attr, Function, FunctionError, Parameter, model};

use crate::moment::Moment;

model! {
    /// Parts of a timestamp, as they are at its own offset from UTC.
    pub struct Parts {
        pub year: Attr<i64> = computed(),
        pub year_day: Attr<i64> = computed(),
        pub day: Attr<i64> = computed(),
        pub month: Attr<i64> = computed(),
        pub month_name: Attr<String> = computed(),
        pub weekday: Attr<i64> = computed(),
        pub weekday_name: Attr<String> = computed(),
        pub hour: Attr<i64> = computed(),
        pub minute: Attr<i64> = computed(),
        pub second: Attr<i64> = computed(),
        pub iso_year: Attr<i64> = computed(),
        pub iso_week: Attr<i64> = computed(),
    }
}

model! {
    /// Result of `rfc3339_parse`.
    pub struct OfText {
        pub parts: Parts = flatten,
        pub unix: Attr<i64> = computed(),
    }
}

model! {
    /// Result of `unix_timestamp_parse`.
    pub struct OfSeconds {
        pub parts: Parts = flatten,
        pub rfc3339: Attr<String> = computed(),
    }
}

model! {
    /// Result of `duration_parse`.
    pub struct Units {
        pub hours: Attr<Number> = computed(),
        pub minutes: Attr<Number> = computed(),
        pub seconds: Attr<Number> = computed(),
        pub milliseconds: Attr<i64> = computed(),
        pub microseconds: Attr<i64> = computed(),
        pub nanoseconds: Attr<i64> = computed(),
    }
}

impl From<Moment> for Parts {
    fn from(moment: Moment) -> Parts {
        let date = moment.date();
        let iso = date.iso_week_date();
        Parts {
            year: moment.year().into(),
            year_day: i64::from(date.day_of_year()).into(),
            day: moment.day().into(),
            month: moment.month().into(),
            month_name: date.strftime("%B").to_string().into(),
            // As in Go, weeks begin with Sunday, which is 0.
            weekday: i64::from(moment.weekday().to_sunday_zero_offset()).into(),
            weekday_name: date.strftime("%A").to_string().into(),
            hour: moment.hour().into(),
            minute: moment.minute().into(),
            second: moment.second().into(),
            iso_year: i64::from(iso.year()).into(),
            iso_week: i64::from(iso.week()).into(),
        }
    }
}

pub(crate) fn rfc3339_parse() -> Function {
    Function::new(
        "Parses a timestamp in the format of RFC 3339.",
        "Parses a timestamp in the format of RFC 3339 and returns an object with its parts: of the date and the time of day as \
         they \
         are at its own offset from UTC, and the seconds since 1970.",
        vec![Parameter::new::<String>(
            "timestamp",
            "A timestamp in the format of RFC 3339.",
        )],
        |arguments: Arguments<'_>| {
            let text: String = arguments.get(0)?;
            let moment = Moment::parse(&text)
                .map_err(|_| FunctionError::argument(0, format!("{text:?} is not a valid RFC3339 timestamp")))?;
            Ok(OfText {
                parts: moment.into(),
                unix: moment.unix().into(),
            })
        },
    )
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
            Ok(OfSeconds {
                parts: moment.into(),
                rfc3339: moment.to_string().into(),
            })
        },
    )
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
                // With the precision of the official provider, which is that of the floating-point number.
                Attr::Known(Number::from_f64(float).unwrap_or_else(|| 0_i64.into()))
            };
            Ok(Units {
                hours: fractional(3_600_000_000_000),
                minutes: fractional(60_000_000_000),
                seconds: fractional(1_000_000_000),
                milliseconds: (nanoseconds / 1_000_000).into(),
                microseconds: (nanoseconds / 1_000).into(),
                nanoseconds: nanoseconds.into(),
            })
        },
    )
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
