import type { Step, StepAccess, Steps, StepTx } from '../shared/verbs/steps.ts';
import type { Access } from './file/access.ts';
import type { Database } from './file/database.ts';
import { isConstraint, unlessTaken } from './file/faults.ts';
import type { Tx } from './file/write-queue.ts';

/** Carries out a verb that is written in steps (`stores/shared/verbs`). */
export function carryOut<T>(db: Database, steps: Steps<T>): T {
  for (let step = steps.next(); ; ) {
    if (step.done) return step.value;
    let answer: unknown;
    try {
      answer = answerTo(db, step.value);
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(answer);
  }
}

function answerTo(db: Database, step: Step): unknown {
  if (step.how === 'act') return step.act();
  if (step.how === 'contents') return db;
  if (step.how === 'together') return step.steps.map((steps) => carryOut(db, steps));
  const { how, text, values } = step;
  switch (how) {
    case 'one':
    case 'all':
    case 'each':
      return db[how](text, ...values);
    case 'insert':
      return db.run(text, ...values).no;
    case 'changed':
      return db.run(text, ...values).changes;
    case 'run':
      return step.taken === undefined
        ? db.run(text, ...values)
        : unlessTaken(step.taken, () => db.run(text, ...values));
    case 'lock':
      return;
  }
}

/** A function that only reads, from a verb in steps. */
export function reader<A extends unknown[], T>(verb: (...args: A) => Steps<T>): (db: Database, ...args: A) => T {
  return (db, ...args) => carryOut(db, verb(...args));
}

/** A function that writes, from a verb in steps. */
export function writer<A extends unknown[], T>(verb: (tx: StepTx, ...args: A) => Steps<T>): (tx: Tx, ...args: A) => T {
  return (tx, ...args) => carryOut(tx.db, verb(stepTx(tx), ...args));
}

export function stepTx({ now, monotonic, moved }: Tx): StepTx {
  return { now, monotonic, moved: (id) => moved(id, null), isTaken: isConstraint };
}

export function stepAccess(access: Access): StepAccess {
  return {
    paging: (name, verb) => access.paging(name, reader(verb)),
    reading: (verb) => access.reading(reader(verb)),
    looking: (verb) => access.reading(reader(verb)),
    lookingAt: (verb) => access.reading((db, ...args) => carryOut(db, verb(access.clock.monotonic(), ...args))),
    writing: (verb) => access.writing(writer(verb)),
  };
}
