/**
 * The macros of `syntax-rules`, over an interpreter's own pairs and symbols. They are not
 * hygienic: a name that a macro brings means what it means where the macro is used, and
 * names that it binds are renamed.
 *
 * @module
 */

/** An interpreter's lists. */
export interface Lists {
  isPair(x: unknown): x is { car: unknown; cdr: unknown };
  cons(car: unknown, cdr: unknown): unknown;
  nil: unknown;
  isSymbol(x: unknown): x is { name: string };
  symbol(name: string): unknown;
  equal(a: unknown, b: unknown): boolean;
}

type Bindings = Map<string, unknown>;

/** What an ellipsis matched: bindings for each time. */
class Repeated {
  constructor(readonly each: Bindings[]) {}
}

/** Thrown where no rule fits. */
export class NoRule extends Error {}

const BINDERS = new Set([
  "let",
  "let*",
  "letrec",
  "letrec*",
  "lambda",
  "do",
  "let-values",
  "let*-values",
]);

/** Makes the function that expands a macro's uses. */
export function syntaxRules(
  lists: Lists,
  name: string,
  spec: unknown,
): (form: unknown) => unknown {
  const { isPair, isSymbol, cons, nil } = lists;
  const array = (x: unknown): unknown[] => {
    const items: unknown[] = [];
    for (; isPair(x); x = x.cdr) items.push(x.car);
    return items;
  };
  const nameOf = (x: unknown) => isSymbol(x) ? x.name : undefined;
  let [, literalList, ...rules] = array(spec);
  let dots = "...";
  if (isSymbol(literalList)) { // (syntax-rules dots (literals) rule …)
    dots = literalList.name;
    [literalList, ...rules] = rules;
  }
  const literals = new Set(array(literalList).map(nameOf));
  let renamings = 0;

  function match(pattern: unknown, form: unknown, into: Bindings): boolean {
    if (isSymbol(pattern)) {
      if (literals.has(pattern.name)) return form === pattern;
      if (pattern.name !== "_") into.set(pattern.name, form);
      return true;
    }
    if (isPair(pattern)) {
      if (isPair(pattern.cdr) && nameOf(pattern.cdr.car) === dots) {
        const after = array(pattern.cdr.cdr).length;
        const items: unknown[] = [];
        let rest = form;
        for (; isPair(rest); rest = rest.cdr) items.push(rest.car);
        const count = items.length - after;
        if (count < 0) return false;
        const each: Bindings[] = [];
        for (const item of items.slice(0, count)) {
          const bound: Bindings = new Map();
          if (!match(pattern.car, item, bound)) return false;
          each.push(bound);
        }
        const repeated = new Repeated(each);
        for (const variable of variables(pattern.car)) {
          into.set(variable, repeated);
        }
        let tail = form;
        for (let i = 0; i < count; i++) tail = (tail as { cdr: unknown }).cdr;
        return match(pattern.cdr.cdr, tail, into);
      }
      return isPair(form) && match(pattern.car, form.car, into) &&
        match(pattern.cdr, form.cdr, into);
    }
    if (pattern === nil) return form === nil;
    if (Array.isArray(pattern)) {
      return Array.isArray(form) && match(listOf(pattern), listOf(form), into);
    }
    return lists.equal(pattern, form);
  }

  function variables(pattern: unknown): string[] {
    if (isSymbol(pattern)) {
      return literals.has(pattern.name) || pattern.name === dots
        ? []
        : [pattern.name];
    }
    if (isPair(pattern)) {
      return [...variables(pattern.car), ...variables(pattern.cdr)];
    }
    return Array.isArray(pattern) ? pattern.flatMap(variables) : [];
  }

  const listOf = (items: unknown[]) =>
    items.reduceRight((rest, item) => cons(item, rest), nil);

  function fill(
    template: unknown,
    bound: Bindings,
    fresh: Map<string, unknown>,
  ): unknown {
    if (isSymbol(template)) {
      if (bound.has(template.name)) return bound.get(template.name);
      return fresh.get(template.name) ?? template;
    }
    if (Array.isArray(template)) {
      return array(fill(listOf(template), bound, fresh));
    }
    if (!isPair(template)) return template;
    if (nameOf(template.car) === dots && isPair(template.cdr)) { // (... ...)
      return template.cdr.car;
    }
    let after = template.cdr, depth = 0;
    while (isPair(after) && nameOf(after.car) === dots) {
      after = after.cdr;
      depth++;
    }
    if (depth === 0) {
      return cons(
        fill(template.car, bound, fresh),
        fill(template.cdr, bound, fresh),
      );
    }
    let results = [bound];
    for (; depth > 0; depth--) {
      results = results.flatMap((one) => {
        const repeated = variables(template.car).map((v) => one.get(v))
          .filter((value): value is Repeated => value instanceof Repeated);
        if (repeated.length === 0) {
          throw new NoRule(`${name}: nothing to repeat`);
        }
        const length = Math.max(...repeated.map(({ each }) => each.length));
        return Array.from({ length }, (_, i) => {
          const inner = new Map(one);
          for (const { each } of repeated) {
            for (const [k, v] of each[i] ?? []) inner.set(k, v);
          }
          return inner;
        });
      });
    }
    const rest = fill(after, bound, fresh);
    return results.map((one) => fill(template.car, one, fresh))
      .reduceRight((tail, item) => cons(item, tail), rest);
  }

  /** The names that a template binds itself, which must not catch those of its use. */
  function bindsIn(
    template: unknown,
    bound: Bindings,
    into: Set<string>,
  ): void {
    if (!isPair(template)) return;
    if (BINDERS.has(nameOf(template.car) ?? "") && isPair(template.cdr)) {
      let list = template.cdr.car;
      if (isSymbol(list)) { // a named let, or (lambda args …)
        if (!bound.has(list.name)) into.add(list.name);
        if (nameOf(template.car) === "let" && isPair(template.cdr.cdr)) {
          list = template.cdr.cdr.car;
        }
      }
      for (; isPair(list); list = list.cdr) {
        const one = isPair(list.car) ? list.car.car : list.car;
        for (const each of isPair(one) ? array(one) : [one]) {
          const own = nameOf(each);
          if (own !== undefined && own !== dots && !bound.has(own)) {
            into.add(own);
          }
        }
      }
    }
    bindsIn(template.car, bound, into);
    bindsIn(template.cdr, bound, into);
  }

  return (form) => {
    const given = isPair(form) ? form.cdr : nil;
    for (const rule of rules) {
      const [pattern, template] = array(rule);
      const bound: Bindings = new Map();
      if (!isPair(pattern) || !match(pattern.cdr, given, bound)) continue;
      const own = new Set<string>();
      bindsIn(template, bound, own);
      renamings++;
      const fresh = new Map(
        [...own].map((n) => [n, lists.symbol(`${n}~${renamings}`)]),
      );
      return fill(template, bound, fresh);
    }
    throw new NoRule(`${name}: no rule of its syntax fits`);
  };
}
