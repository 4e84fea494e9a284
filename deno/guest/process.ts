/**
 * Node's process as the guest sees it, and the errors that nobody caught.
 *
 * @module
 */

import { lenientEnv } from "./env.ts";
import {
  answer,
  type Functions,
  processAnswers,
  reportAnswers,
} from "./sandbox.ts";

export interface NodeProcess {
  argv: string[];
  env: Record<string, string | undefined>;
  listenerCount(name: string): number;
}

// Taken before the guest's code runs, which may replace them.
const queue = queueMicrotask;
const preventDefault = Event.prototype.preventDefault;
// The global process is made when it is first used, which takes 20 ms.
const { get: nodeProcess, set: setProcess } = Object.getOwnPropertyDescriptor(
  globalThis,
  "process",
)! as { get(): NodeProcess; set(value: unknown): void };

let prepared: NodeProcess | undefined;
const changes: ((process: NodeProcess) => void)[] = [];

/** Has the process changed when it is made. */
export function adjustProcess(change: (process: NodeProcess) => void): void {
  if (prepared === undefined) changes.push(change);
  else change(prepared);
}

/** Says that the guest may have listeners to the process's events. */
export function isProcessMade(): boolean {
  return prepared !== undefined;
}

/** Gives the process, with an environment and a machine that may be looked at. */
export function prepareProcess(): NodeProcess {
  if (prepared === undefined) {
    prepared = nodeProcess.call(globalThis);
    prepared.env = lenientEnv(prepared.env);
    const asked = prepared as unknown as Functions;
    answer(asked, processAnswers);
    answer(asked.report, reportAnswers);
    for (const change of changes) change(prepared);
  }
  return prepared;
}

Object.defineProperty(globalThis, "process", {
  configurable: true,
  enumerable: true,
  get: prepareProcess,
  set: setProcess,
});

/**
 * Calls `report` with each error that nobody caught, unless a listener of the
 * guest's takes care of it. Deno does nothing about it any more.
 */
export function onUncaught(report: (thrown: unknown) => void): void {
  const listener = (event: ErrorEvent | PromiseRejectionEvent) => {
    const thrown = event instanceof ErrorEvent ? event.error : event.reason;
    if (nodeListens(event.type)) return;
    unlessPrevented(event, () => report(thrown));
  };
  addEventListener("error", listener);
  addEventListener("unhandledrejection", listener);
}

/**
 * Does something in place of what Deno would do about an event, once the guest's
 * listeners, which come after this one, have heard of it; nothing if one of them
 * prevents it.
 */
export function unlessPrevented(event: Event, act: () => void): void {
  let prevented = false;
  Object.defineProperty(event, "preventDefault", {
    value: () => prevented = true,
  });
  preventDefault.call(event);
  queue(() => {
    if (!prevented) act();
  });
}

/** Says that Deno will hand the error to listeners of node:process. */
function nodeListens(type: string): boolean {
  if (type !== "unhandledrejection") return false; // those use addEventListener
  const process = prepareProcess();
  return process.listenerCount("unhandledRejection") +
      process.listenerCount("uncaughtException") > 0;
}
