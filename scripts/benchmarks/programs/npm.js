import { addDays, format } from "npm:date-fns@4";
import { z } from "npm:zod@4";

const days = z.coerce.number().int().parse("2");
console.log(format(addDays(new Date(2026, 1, 27), days), "yyyy-MM-dd"));
