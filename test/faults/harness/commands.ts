import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';

/** For a program: prints one line. Written to the pipe when this returns, so a line once printed survives any kill. */
export function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** What the program was started with. */
export function input<T>(): T {
  return JSON.parse(process.argv[2] ?? '{}') as T;
}

/** Calls back for every command. When whoever started us is gone, we end. */
export function onCommand<T>(handle: (command: T) => void): void {
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => handle(JSON.parse(line) as T));
  lines.on('close', () => process.exit(0));
}

/** Says that the program does its work from now on, and keeps what was compiled: Node does so only at an exit in good order. */
export function ready(): void {
  say({ ready: true });
  flushCompileCache();
}
