/**
 * Dates as text, and text as dates, as `date` and `printf` have them.
 *
 * @module
 */

const DAYS = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday",
];
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

/** A moment's parts in a time zone. */
interface Parts {
  year: number;
  /** From 0. */
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  weekday: number;
  /** From 1. */
  yearDay: number;
  /** Minutes east of Greenwich. */
  offset: number;
  zone: string;
}

/** Minutes that a time zone is east of Greenwich at a moment. */
export function offsetOf(when: Date, zone: string): number {
  if (zone === "" || zone === "UTC" || zone === "UTC0" || zone === "GMT") {
    return 0;
  }
  const fixed = /^<?[A-Za-z+-]+\d*>?([-+]?)(\d{1,2})(?::(\d\d))?$/.exec(zone);
  if (fixed !== null && /\d/.test(zone)) {
    return (fixed[1] === "-" ? 1 : -1) *
      (Number(fixed[2]) * 60 + Number(fixed[3] ?? 0));
  }
  try {
    const parts = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      timeZoneName: "longOffset",
    }).formatToParts(when);
    const text = parts.find((p) => p.type === "timeZoneName")?.value ?? "GMT";
    const found = /GMT([-+])(\d\d):(\d\d)/.exec(text);
    return found === null ? 0 : (found[1] === "-" ? -1 : 1) *
      (Number(found[2]) * 60 + Number(found[3]));
  } catch {
    return 0;
  }
}

function nameOf(when: Date, zone: string, offset: number): string {
  if (zone === "" || /^(UTC|GMT)0?$/.test(zone)) {
    return zone === "GMT" ? "GMT" : "UTC";
  }
  const fixed = /^<?([A-Za-z]+)[-+]?\d/.exec(zone);
  if (fixed !== null) return fixed[1]!;
  try {
    for (const locale of ["en-US", "en-GB", "en-AU"]) {
      const parts = new Intl.DateTimeFormat(locale, {
        timeZone: zone,
        timeZoneName: "short",
      }).formatToParts(when);
      const text = parts.find((p) => p.type === "timeZoneName")?.value ?? "";
      if (/^[A-Z]{2,5}$/.test(text)) return text;
    }
  } catch {
    return "UTC";
  }
  const long: Record<string, string> = {
    "Asia/Tokyo": "JST",
    "Asia/Kolkata": "IST",
    "Asia/Shanghai": "CST",
    "Asia/Seoul": "KST",
  };
  if (long[zone] !== undefined) return long[zone];
  return zoneOffset(offset, "").replace(/00$/, "");
}

export function partsOf(when: Date, zone = ""): Parts {
  const offset = offsetOf(when, zone);
  const d = new Date(when.getTime() + offset * 60_000);
  const start = Date.UTC(d.getUTCFullYear(), 0, 1);
  return {
    year: d.getUTCFullYear(),
    month: d.getUTCMonth(),
    day: d.getUTCDate(),
    hour: d.getUTCHours(),
    minute: d.getUTCMinutes(),
    second: d.getUTCSeconds(),
    weekday: d.getUTCDay(),
    yearDay: Math.floor((d.getTime() - start) / 86_400_000) + 1,
    offset,
    zone: nameOf(when, zone, offset),
  };
}

function zoneOffset(minutes: number, colon: string): string {
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${pad(Math.floor(size / 60), 2)}${colon}${
    pad(size % 60, 2)
  }`;
}

const pad = (n: number, width: number, by = "0") =>
  String(n).padStart(width, by);

/** The week's number and its year by ISO 8601. */
function isoWeek(p: Parts): { week: number; year: number } {
  const weekday = (p.weekday + 6) % 7;
  const thursday = new Date(Date.UTC(p.year, p.month, p.day - weekday + 3));
  const first = new Date(Date.UTC(thursday.getUTCFullYear(), 0, 4));
  const week = 1 +
    Math.round(
      (thursday.getTime() - first.getTime()) / 604_800_000 -
        (3 - (first.getUTCDay() + 6) % 7) / 7,
    );
  return { week, year: thursday.getUTCFullYear() };
}

/** C's strftime, with GNU's flags. `nanoseconds` are those within the second. */
export function strftime(
  template: string,
  when: Date,
  zone = "",
  nanoseconds = when.getMilliseconds() * 1e6,
): string {
  const p = partsOf(when, zone);
  const hour12 = p.hour % 12 || 12;
  return template.replace(
    /%([-_0^#]*)(\d*)(:{0,2})([A-Za-z%+])/g,
    (all, flags: string, width: string, colons: string, letter: string) => {
      let digits: [number, number, string?] | undefined,
        text: string | undefined;
      switch (letter) {
        case "Y":
          digits = [p.year, 1];
          break;
        case "C":
          digits = [Math.floor(p.year / 100), 2];
          break;
        case "y":
          digits = [p.year % 100, 2];
          break;
        case "m":
          digits = [p.month + 1, 2];
          break;
        case "d":
          digits = [p.day, 2];
          break;
        case "e":
          digits = [p.day, 2, " "];
          break;
        case "H":
          digits = [p.hour, 2];
          break;
        case "k":
          digits = [p.hour, 2, " "];
          break;
        case "I":
          digits = [hour12, 2];
          break;
        case "l":
          digits = [hour12, 2, " "];
          break;
        case "M":
          digits = [p.minute, 2];
          break;
        case "S":
          digits = [p.second, 2];
          break;
        case "j":
          digits = [p.yearDay, 3];
          break;
        case "u":
          digits = [p.weekday || 7, 1];
          break;
        case "w":
          digits = [p.weekday, 1];
          break;
        case "s":
          digits = [Math.floor(when.getTime() / 1000), 1];
          break;
        case "q":
          digits = [Math.floor(p.month / 3) + 1, 1];
          break;
        case "V":
          digits = [isoWeek(p).week, 2];
          break;
        case "G":
          digits = [isoWeek(p).year, 1];
          break;
        case "g":
          digits = [isoWeek(p).year % 100, 2];
          break;
        case "U":
          digits = [Math.floor((p.yearDay + 6 - p.weekday) / 7), 2];
          break;
        case "W":
          digits = [Math.floor((p.yearDay + 6 - (p.weekday + 6) % 7) / 7), 2];
          break;
        case "N":
          text = pad(nanoseconds, 9).slice(0, Number(width) || 9);
          return text;
        case "a":
          text = DAYS[p.weekday]!.slice(0, 3);
          break;
        case "A":
          text = DAYS[p.weekday]!;
          break;
        case "b":
        case "h":
          text = MONTHS[p.month]!.slice(0, 3);
          break;
        case "B":
          text = MONTHS[p.month]!;
          break;
        case "p":
          text = p.hour < 12 ? "AM" : "PM";
          if (flags.includes("#")) text = text.toLowerCase();
          break;
        case "P":
          text = p.hour < 12 ? "am" : "pm";
          break;
        case "n":
          text = "\n";
          break;
        case "t":
          text = "\t";
          break;
        case "%":
          text = "%";
          break;
        case "z":
          text = colons === "::"
            ? zoneOffset(p.offset, ":") + ":00"
            : zoneOffset(p.offset, colons);
          break;
        case "Z":
          text = p.zone;
          break;
        case "F":
          text = strftime("%Y-%m-%d", when, zone);
          break;
        case "T":
        case "X":
          text = strftime("%H:%M:%S", when, zone);
          break;
        case "R":
          text = strftime("%H:%M", when, zone);
          break;
        case "D":
        case "x":
          text = strftime("%m/%d/%y", when, zone);
          break;
        case "r":
          text = strftime("%I:%M:%S %p", when, zone);
          break;
        case "c":
          text = strftime("%a %b %e %H:%M:%S %Y", when, zone);
          break;
        default:
          return all;
      }
      if (digits !== undefined) {
        const [n, size, by = "0"] = digits;
        if (flags.includes("-")) return String(n);
        return pad(
          n,
          Number(width) || size,
          flags.includes("_") ? " " : flags.includes("0") ? "0" : by,
        );
      }
      if (flags.includes("^")) text = text!.toUpperCase();
      return Number(width) > 0
        ? text!.padStart(Number(width), flags.includes("0") ? "0" : " ")
        : text!;
    },
  );
}

/** What `date -d` understands; undefined for what it doesn't. */
export function parseDate(
  text: string,
  now: Date,
  zone = "",
): Date | undefined {
  let rest = text.trim().toLowerCase();
  const epoch = /^@(-?\d+(?:\.\d+)?)$/.exec(rest);
  if (epoch !== null) return new Date(Number(epoch[1]) * 1000);
  const p = partsOf(now, zone);
  let [year, month, day] = [p.year, p.month, p.day];
  let [hour, minute, second, milli] = [
    p.hour,
    p.minute,
    p.second,
    now.getMilliseconds(),
  ];
  let timed = false, dated = false, offset: number | undefined;
  const shift = { year: 0, month: 0, day: 0, ms: 0 };
  const take = (regex: RegExp): RegExpExecArray | null => {
    const found = regex.exec(rest);
    if (found !== null) rest = rest.slice(found[0].length).trimStart();
    return found;
  };
  const setTime = (h: number, m: number, s: number, ms = 0) => {
    [hour, minute, second, milli] = [h, m, s, ms];
    timed = true;
  };
  const monthOf = (name: string) =>
    MONTHS.findIndex((m) => m.toLowerCase().startsWith(name.slice(0, 3)));
  const month3 = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\\.?";
  for (let guard = 0; rest !== "" && guard < 40; guard++) {
    let f: RegExpExecArray | null;
    if (
      (f = take(/^(\d{4,})-(\d{1,2})-(\d{1,2})(?:t(?=\d)|(?=[\s]|$|z))/)) !==
        null
    ) {
      [year, month, day] = [Number(f[1]), Number(f[2]) - 1, Number(f[3])];
      dated = true;
    } else if ((f = take(/^(\d{1,2})\/(\d{1,2})(?:\/(\d{2,4}))?/)) !== null) {
      [month, day] = [Number(f[1]) - 1, Number(f[2])];
      if (f[3] !== undefined) {
        year = Number(f[3]) +
          (f[3].length === 2 ? Number(f[3]) < 69 ? 2000 : 1900 : 0);
      }
      dated = true;
    } else if ((f = take(/^(\d{4})\/(\d{1,2})\/(\d{1,2})/)) !== null) {
      [year, month, day] = [Number(f[1]), Number(f[2]) - 1, Number(f[3])];
      dated = true;
    } else if (
      (f = take(/^(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?\s*(am|pm)?/)) !==
        null
    ) {
      let h = Number(f[1]);
      if (f[5] !== undefined) h = h % 12 + (f[5] === "pm" ? 12 : 0);
      setTime(
        h,
        Number(f[2]),
        Number(f[3] ?? 0),
        f[4] === undefined ? 0 : Number("0." + f[4]) * 1000,
      );
    } else if ((f = take(/^(\d{1,2})\s*(am|pm)\b/)) !== null) {
      setTime(Number(f[1]) % 12 + (f[2] === "pm" ? 12 : 0), 0, 0);
    } else if (
      (f = take(/^(\d{8})(?:t?(\d\d)(\d\d)(\d\d)?)?(?=\s|$|z)/)) !== null
    ) {
      [year, month, day] = [
        Number(f[1]!.slice(0, 4)),
        Number(f[1]!.slice(4, 6)) - 1,
        Number(f[1]!.slice(6)),
      ];
      if (f[2] !== undefined) {
        setTime(Number(f[2]), Number(f[3]), Number(f[4] ?? 0));
      }
      dated = true;
    } else if (
      timed &&
      (f = take(
          /^([-+])(\d\d):?(\d\d)?(?![\d]*\s*(?:sec|min|hour|day|week|month|year))/,
        )) !== null
    ) {
      offset = (f[1] === "-" ? -1 : 1) *
        (Number(f[2]) * 60 + Number(f[3] ?? 0));
    } else if ((f = take(/^(z|utc|gmt)\b/)) !== null) offset = 0;
    else if (
      (f = take(/^(est|edt|cst|cdt|mst|mdt|pst|pdt|cet|cest|jst)\b/)) !== null
    ) {
      offset = ({
        est: -300,
        edt: -240,
        cst: -360,
        cdt: -300,
        mst: -420,
        mdt: -360,
        pst: -480,
        pdt: -420,
        cet: 60,
        cest: 120,
        jst: 540,
      } as Record<string, number>)[f[1]!]!;
    } else if (
      (f = take(
        new RegExp(
          `^(\\d{1,2})(?:st|nd|rd|th)?[ -]${month3}(?:[ ,-]+(\\d{4}))?(?![\\d:])`,
        ),
      )) !== null
    ) {
      [day, month] = [Number(f[1]), monthOf(f[2]!)];
      if (f[3] !== undefined) year = Number(f[3]);
      dated = true;
    } else if (
      (f = take(
        new RegExp(
          `^${month3}\\s+(\\d{1,2})(?:st|nd|rd|th)?(?:,?\\s+(\\d{4}))?(?![\\d:])`,
        ),
      )) !== null
    ) {
      [month, day] = [monthOf(f[1]!), Number(f[2])];
      if (f[3] !== undefined) year = Number(f[3]);
      dated = true;
    } else if ((f = take(/^(now|today)\b/)) !== null) continue;
    else if ((f = take(/^midnight\b/)) !== null) setTime(0, 0, 0);
    else if ((f = take(/^noon\b/)) !== null) setTime(12, 0, 0);
    else if ((f = take(/^(tomorrow|yesterday)\b/)) !== null) {
      shift.day += f[1] === "tomorrow" ? 1 : -1;
    } else if (
      (f = take(
        /^(?:([-+]?\s*\d+)|(next|last|a|an|this))?\s*(second|sec|minute|min|hour|day|week|fortnight|month|year)s?\b(\s+ago\b)?/,
      )) !== null
    ) {
      let n = f[1] !== undefined
        ? Number(f[1].replace(/\s/g, ""))
        : f[2] === "last"
        ? -1
        : f[2] === "this"
        ? 0
        : 1;
      if (f[4] !== undefined) n = -n;
      const unit = f[3]!;
      if (unit.startsWith("sec")) shift.ms += n * 1000;
      else if (unit.startsWith("min")) shift.ms += n * 60_000;
      else if (unit === "hour") shift.ms += n * 3_600_000;
      else if (unit === "day") shift.day += n;
      else if (unit === "week") shift.day += 7 * n;
      else if (unit === "fortnight") shift.day += 14 * n;
      else if (unit === "month") shift.month += n;
      else shift.year += n;
    } else if (
      (f = take(
        /^(?:(next|last|this)\s+)?(sun|mon|tue|wed|thu|fri|sat)[a-z]*,?/,
      )) !== null
    ) {
      // With a date the day's name says nothing.
      if (!dated && !/\d{4}|\d[ -][a-z]{3}|[a-z]{3} \d/.test(rest)) {
        const wanted = DAYS.findIndex((d) =>
          d.toLowerCase().startsWith(f![2]!)
        );
        let days = (wanted - p.weekday + 7) % 7;
        if (f[1] === "next" && days === 0) days = 7;
        if (f[1] === "last") days = days === 0 ? -7 : days - 7;
        shift.day += days;
        if (!timed) setTime(0, 0, 0);
      }
    } else if (dated && (f = take(/^(\d{4})$/)) !== null) year = Number(f[1]);
    else if ((f = take(/^,/)) !== null) continue;
    else return undefined;
  }
  if (
    rest !== "" || month < 0 || month > 11 || day < 1 || day > 31 ||
    hour > 24 || minute > 59 || second > 60
  ) return undefined;
  if (dated && day > new Date(Date.UTC(year, month + 1, 0)).getUTCDate()) {
    return undefined;
  }
  if (dated && !timed) [hour, minute, second, milli] = [0, 0, 0, 0];
  const utc = new Date(
    Date.UTC(
      year + shift.year,
      month + shift.month,
      day + shift.day,
      hour,
      minute,
      second,
      milli,
    ),
  );
  if (year < 100) utc.setUTCFullYear(year + shift.year);
  const guess = offset ?? offsetOf(utc, zone);
  let when = new Date(utc.getTime() - guess * 60_000);
  if (offset === undefined) {
    when = new Date(utc.getTime() - offsetOf(when, zone) * 60_000);
  }
  return new Date(when.getTime() + shift.ms);
}
