// Print a sprint's calendar, with npm packages found by their imports.
//
// Try it:  rillbox run examples/sprint.ts 2026-03-02 10

import { addBusinessDays, format, isValid, parseISO } from "npm:date-fns@4";
import { z } from "npm:zod@4";

const options = z.object({
  start: z.string().transform((text) => parseISO(text)).refine(
    isValid,
    "Want a date such as 2026-03-02",
  ),
  days: z.coerce.number().int().min(1).max(60),
});

const [start = "2026-03-02", days = "5"] = Deno.args;
const sprint = options.parse({ start, days });

const calendar: string[] = [];
for (let i = 0; i < sprint.days; i++) {
  const day = addBusinessDays(sprint.start, i);
  calendar.push(format(day, "yyyy-MM-dd"));
  console.log(`day ${i + 1}: ${format(day, "EEEE d MMMM")}`);
}

export default calendar;
