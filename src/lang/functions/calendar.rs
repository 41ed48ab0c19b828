//! The calendar, for all years that a time with a year of four digits plus a duration can reach.
//!
//! Libraries for dates end with the year 9999, some a day earlier. But configurations use times such as
//! `9999-12-31T23:59:59Z` for "never", and adding to them must work.

pub(super) const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Days from March 1 of the year 0 to January 1, 1970.
const EPOCH: i64 = 719_468;

/// Days in 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;

/// A day of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub year: i64,
    pub month: i64,
    pub day: i64,
}

impl Date {
    /// Returns true if the month has this day in this year.
    pub fn exists(self) -> bool {
        (1..=12).contains(&self.month) && self.day >= 1 && Date::from_days(self.days()) == self
    }

    /// Returns the number of days since January 1, 1970, which is negative for earlier dates.
    pub fn days(self) -> i64 {
        // A year that begins in March has its leap day at the end.
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let of_era = year.rem_euclid(400);
        let month = (self.month + 9) % 12;
        // From March on, month lengths repeat every five months, which are 153 days.
        let of_year = (153 * month + 2) / 5 + self.day - 1;
        year.div_euclid(400) * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH
    }

    /// Returns the date that is this many days after January 1, 1970.
    pub fn from_days(days: i64) -> Date {
        let days = days.saturating_add(EPOCH);
        let of_era = days.rem_euclid(ERA);
        // Corrects for the leap days of 4, 100 and 400 years, so that each year has 365 days.
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * of_year + 2) / 153;
        let month_of_year = if month < 10 { month + 3 } else { month - 9 };
        Date {
            year: days.div_euclid(ERA) * 400 + year_of_era + i64::from(month_of_year <= 2),
            month: month_of_year,
            day: of_year - (153 * month + 2) / 5 + 1,
        }
    }

    /// Returns the index of this date's day of the week in [`WEEKDAYS`].
    pub fn weekday(self) -> usize {
        // January 1, 1970 was a Thursday.
        usize::try_from((self.days() + 3).rem_euclid(7)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: i64, month: i64, day: i64) -> Date {
        Date { year, month, day }
    }

    #[test]
    fn days_and_dates_agree_over_all_years() {
        let mut expected = date(-400, 1, 1);
        for days in expected.days()..date(10_400, 1, 1).days() {
            assert_eq!(Date::from_days(days), expected);
            assert_eq!(expected.days(), days);
            let next = date(expected.year, expected.month, expected.day + 1);
            let month = date(expected.year, expected.month + 1, 1);
            expected = [next, month]
                .into_iter()
                .find(|d| d.exists())
                .unwrap_or(date(expected.year + 1, 1, 1));
        }
        assert_eq!(date(1970, 1, 1).days(), 0);
        assert_eq!(WEEKDAYS[date(1970, 1, 1).weekday()], "Thursday");
        assert_eq!(WEEKDAYS[date(9999, 12, 31).weekday()], "Friday");
    }

    #[test]
    fn days_that_a_month_does_not_have_do_not_exist() {
        for (year, month, day) in [(2023, 2, 29), (1900, 2, 29), (2024, 4, 31), (2024, 13, 1), (2024, 1, 0)] {
            assert!(!date(year, month, day).exists(), "{year}-{month}-{day}");
        }
        assert!(date(2000, 2, 29).exists() && date(9999, 12, 31).exists());
    }
}
