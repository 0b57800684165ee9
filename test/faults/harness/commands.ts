import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';

/** For a program: prints one line. When this returns, the line is in the pipe, so it survives a kill. */
export function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** What the program was started with. */
export function input<T>(): T {
  return JSON.parse(process.argv[2] ?? '{}') as T;
}

/** Calls `handle` for every command. Ends this process when the one that started it has ended. */
export function onCommand<T>(handle: (command: T) => void): void {
  const lines = createInterface({ input: process.stdin });
  lines.on('line', (line) => handle(JSON.parse(line) as T));
  lines.on('close', () => process.exit(0));
}

/** Says that the program has started. Also stores the compile cache, which Node does only at a normal exit. */
export function ready(): void {
  say({ ready: true });
  flushCompileCache();
}
