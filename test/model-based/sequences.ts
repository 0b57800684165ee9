import fc from 'fast-check';
import { seedOfRun } from '../faults/harness/random.ts';

/**
 * Runs random sequences of commands. If one breaks a rule, it is shrunk to the shortest that still does, and printed line by line.
 * THROUGHLINE_SEED repeats a run, THROUGHLINE_LONG makes it twenty times as long, THROUGHLINE_QUICK a fifth as long.
 */
export interface Sequences<Setup, Command> {
  readonly name: string;
  readonly runs: number;
  /** What a sequence starts from. */
  readonly setup: fc.Arbitrary<Setup>;
  readonly command: fc.Arbitrary<Command>;
  readonly longest: number;
  /** Rejects when a rule is broken. `note` adds a line to what is printed then. */
  readonly run: (commands: readonly Command[], note: (line: string) => void, setup: Setup) => Promise<void>;
  readonly show: (command: Command) => string;
}

export async function checkSequences<Setup, Command>(sequences: Sequences<Setup, Command>): Promise<void> {
  const { name, command, longest, run, show } = sequences;
  const seed = seedOfRun();
  const times = process.env.THROUGHLINE_LONG ? 20 : process.env.THROUGHLINE_QUICK ? 0.2 : 1;
  const numRuns = Math.round(sequences.runs * times);
  console.log(`${name}: ${numRuns} sequences, THROUGHLINE_SEED=${seed}`);
  const all = fc.array(command, { minLength: 1, maxLength: longest, size: 'max' });
  let lines: string[] = [];
  const property = fc.asyncProperty(sequences.setup, all, async (setup, commands) => {
    const notes: string[] = [];
    try {
      await run(commands, (line) => notes.push(line), setup);
    } catch (error) {
      lines = notes;
      throw error;
    }
  });
  const result = await fc.check(property, { seed, numRuns });
  if (!result.failed) return;
  // Runs it once more, so that the notes are those of the shortest sequence.
  const [setup, commands] = result.counterexample as [Setup, Command[]];
  const again = await property.run([setup, commands]).catch((error: unknown) => ({ error }));
  const fault = result.errorInstance ?? again;
  throw new Error(
    [
      `${name}: a rule is broken after ${result.numRuns} sequences and ${result.numShrinks} shrinks.`,
      `Repeat it with THROUGHLINE_SEED=${seed}. The shortest sequence found:`,
      `  0. ${JSON.stringify(setup) ?? 'nothing'}`,
      ...commands.map((one, i) => `  ${i + 1}. ${show(one)}`),
      'What happened:',
      ...lines.map((line) => `  ${line}`),
      fault instanceof Error ? (fault.stack ?? fault.message) : String(fault),
    ].join('\n'),
  );
}
