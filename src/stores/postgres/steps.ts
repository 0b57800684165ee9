import type { Step, StepAccess, Steps, StepTx } from '../shared/verbs/steps.ts';
import { contentsOf } from './conversations/content.ts';
import { numbered } from './plans.ts';
import type { Access, Tx } from './server/access.ts';
import type { Sql, TxSql } from './server/connect.ts';
import { violated } from './server/faults.ts';

/** Carries out a verb that is written in steps (`stores/shared/verbs`). One that writes has to be given a transaction. */
export async function carryOut<T>(sql: Sql | TxSql, steps: Steps<T>): Promise<T> {
  for (let step = steps.next(); ; ) {
    if (step.done) return step.value;
    let answer: unknown;
    try {
      answer = await answerTo(sql, step.value);
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(answer);
  }
}

function answerTo(sql: Sql | TxSql, step: Step): unknown {
  if (step.how === 'act') return step.act();
  if (step.how === 'contents') return contentsOf(sql, step.owner, step.values);
  if (step.how === 'together') return Promise.all(step.steps.map((steps) => carryOut(sql, steps)));
  const { how, text, values } = step;
  switch (how) {
    case 'one':
    case 'changed':
      return sql[how](numbered(text), ...values);
    case 'all':
    case 'each':
      return sql.all(numbered(text), ...values);
    case 'insert':
      return sql.one<{ no: number }>(numbered(`${text} RETURNING no`), ...values).then((row) => row?.no);
    case 'lock':
      return (sql as TxSql).run(numbered(`${text} FOR UPDATE`), ...values);
    case 'run':
      return (sql as TxSql).runUnlessTaken(step.taken, numbered(text), ...values);
  }
}

/** A function that only reads, from a verb in steps. */
export function reader<A extends unknown[], T>(verb: (...args: A) => Steps<T>) {
  return (sql: Sql, ...args: A): Promise<T> => carryOut(sql, verb(...args));
}

/** A function that writes, from a verb in steps. */
export function writer<A extends unknown[], T>(verb: (tx: StepTx, ...args: A) => Steps<T>) {
  return (tx: Tx, ...args: A): Promise<T> => carryOut(tx.sql, verb(stepTx(tx), ...args));
}

export function stepTx(tx: Tx): StepTx {
  return {
    // Before the transaction has begun they are not known.
    get now() {
      return tx.now;
    },
    get monotonic() {
      return tx.monotonic;
    },
    moved: tx.moved,
    isTaken: (error) => violated(error) !== null,
  };
}

export function stepAccess(access: Access): StepAccess {
  return {
    reading: (verb) => access.reading(reader(verb)),
    paging: (_, verb) => access.reading(reader(verb)),
    looking: (verb) => access.looking(reader(verb)),
    lookingAt: (verb) =>
      access.looking(async (sql, ...args) => carryOut(sql, verb((await access.times(sql)).monotonic, ...args))),
    writing: (verb) => access.writing(writer(verb)),
  };
}
