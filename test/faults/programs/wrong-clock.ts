// For `node --import`: makes the wall clock of this process wrong by this number of milliseconds.
const by = Number(process.env.THROUGHLINE_WRONG_CLOCK_MS ?? 0);
const Right = Date;

globalThis.Date = class extends Right {
  constructor(...args: [] | ConstructorParameters<typeof Right>) {
    super(...((args.length === 0 ? [Right.now() + by] : args) as ConstructorParameters<typeof Right>));
  }

  static override now(): number {
    return Right.now() + by;
  }
} as DateConstructor;
