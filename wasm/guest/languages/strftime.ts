/**
 * Dates and times as C's strftime writes them, in the C locale.
 *
 * @module
 */

/** A moment as C has it. */
export interface Time {
  seconds: number;
  minutes: number;
  hours: number;
  /** From 1. */
  day: number;
  /** From 0. */
  month: number;
  year: number;
  /** From Sunday, which is 0. */
  weekday: number;
  /** From 0. */
  dayOfYear: number;
  /** Seconds east of UTC. */
  offset: number;
}

const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(
  " ",
);
const MONTHS =
  "January February March April May June July August September October November December"
    .split(" ");

export function formatTime(format: string, time: Time): string {
  return format.replace(
    /%[EO]?(.)/gs,
    (all, what: string) => part(what, time) ?? all,
  );
}

function part(what: string, t: Time): string | undefined {
  const two = (n: number, fill = "0") => String(n).padStart(2, fill);
  const again = (format: string) => formatTime(format, t);
  const twelve = (t.hours + 11) % 12 + 1;
  switch (what) {
    case "a":
      return DAYS[t.weekday]?.slice(0, 3) ?? "?";
    case "A":
      return DAYS[t.weekday] ?? "?";
    case "b":
    case "h":
      return MONTHS[t.month]?.slice(0, 3) ?? "?";
    case "B":
      return MONTHS[t.month] ?? "?";
    case "c":
      return again("%a %b %e %H:%M:%S %Y");
    case "C":
      return two(Math.floor(t.year / 100));
    case "d":
      return two(t.day);
    case "D":
    case "x":
      return again("%m/%d/%y");
    case "e":
      return two(t.day, " ");
    case "F":
      return again("%Y-%m-%d");
    case "g":
      return two(isoWeek(t).year % 100);
    case "G":
      return String(isoWeek(t).year);
    case "H":
      return two(t.hours);
    case "I":
      return two(twelve);
    case "j":
      return String(t.dayOfYear + 1).padStart(3, "0");
    case "m":
      return two(t.month + 1);
    case "M":
      return two(t.minutes);
    case "n":
      return "\n";
    case "p":
      return t.hours < 12 ? "AM" : "PM";
    case "r":
      return again("%I:%M:%S %p");
    case "R":
      return again("%H:%M");
    case "s":
      return String(
        Date.UTC(t.year, t.month, t.day, t.hours, t.minutes, t.seconds) / 1000 -
          t.offset,
      );
    case "S":
      return two(t.seconds);
    case "t":
      return "\t";
    case "T":
    case "X":
      return again("%H:%M:%S");
    case "u":
      return String((t.weekday + 6) % 7 + 1);
    case "U":
      return two(Math.floor((t.dayOfYear + 7 - t.weekday) / 7));
    case "V":
      return two(isoWeek(t).week);
    case "w":
      return String(t.weekday);
    case "W":
      return two(Math.floor((t.dayOfYear + 7 - (t.weekday + 6) % 7) / 7));
    case "y":
      return two((t.year % 100 + 100) % 100);
    case "Y":
      return String(t.year);
    case "z": {
      const minutes = Math.abs(t.offset) / 60;
      return (t.offset < 0 ? "-" : "+") + two(Math.floor(minutes / 60)) +
        two(minutes % 60);
    }
    case "Z":
      return t.offset === 0 ? "UTC" : again("%z");
    case "%":
      return "%";
  }
}

/** The week of ISO 8601: the year's first is the one with its first Thursday. */
function isoWeek(t: Time): { year: number; week: number } {
  const monday = (t.weekday + 6) % 7;
  const week = Math.floor((t.dayOfYear - monday + 10) / 7);
  if (week < 1) return { year: t.year - 1, week: weeksIn(t.year - 1) };
  if (week > weeksIn(t.year)) return { year: t.year + 1, week: 1 };
  return { year: t.year, week };
}

/** A year has 53 weeks if its last day, or that of the year before, says so. */
function weeksIn(year: number): number {
  const last = (y: number) => new Date(Date.UTC(y, 11, 31)).getUTCDay();
  return last(year) === 4 || last(year - 1) === 3 ? 53 : 52;
}
