import fc from 'fast-check';

/**
 * Runs random sequences of commands and, when one breaks a rule, shrinks it to the shortest that still does and prints it
 * line by line. THROUGHLINE_SEED repeats a run, THROUGHLINE_LONG makes it ten times as long.
 */
export interface Sequences<Command> {
  readonly name: string;
  readonly runs: number;
  readonly command: fc.Arbitrary<Command>;
  readonly longest: number;
  /** Rejects when a rule is broken. `note` adds a line to what is printed then. */
  readonly run: (commands: readonly Command[], note: (line: string) => void) => Promise<void>;
  readonly show: (command: Command) => string;
}

export async function checkSequences<Command>(sequences: Sequences<Command>): Promise<void> {
  const { name, command, longest, run, show } = sequences;
  const seed = seedOf(process.env.THROUGHLINE_SEED);
  const numRuns = sequences.runs * (process.env.THROUGHLINE_LONG ? 10 : 1);
  console.log(`${name}: ${numRuns} sequences, THROUGHLINE_SEED=${seed}`);
  const all = fc.array(command, { minLength: 1, maxLength: longest, size: 'max' });
  let lines: string[] = [];
  const property = fc.asyncProperty(all, async (commands) => {
    const notes: string[] = [];
    try {
      await run(commands, (line) => notes.push(line));
    } catch (error) {
      lines = notes;
      throw error;
    }
  });
  const result = await fc.check(property, { seed, numRuns });
  if (!result.failed) return;
  // Once more, so that the notes are those of the shortest sequence.
  const [commands] = result.counterexample ?? [[]];
  const again = await property.run([commands as Command[]]).catch((error: unknown) => ({ error }));
  const fault = result.errorInstance ?? again;
  throw new Error(
    [
      `${name}: a rule is broken after ${result.numRuns} sequences and ${result.numShrinks} shrinks.`,
      `Repeat it with THROUGHLINE_SEED=${seed}. The shortest sequence found:`,
      ...(commands as Command[]).map((one, i) => `  ${i + 1}. ${show(one)}`),
      'What happened:',
      ...lines.map((line) => `  ${line}`),
      fault instanceof Error ? (fault.stack ?? fault.message) : String(fault),
    ].join('\n'),
  );
}

function seedOf(given: string | undefined): number {
  if (given === undefined || given === '') return Date.now() % 0x7fffffff;
  const seed = Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`THROUGHLINE_SEED must be a whole number, not ${given}`);
  return seed;
}
