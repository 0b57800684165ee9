import type { TaskState } from '../../../src/core/tasks/task.ts';
import type { TaskChange, TaskFence } from '../../../src/ports/store/tasks.ts';
import type { Store } from '../../../src/ports/store.ts';
import { newTask } from '../../contracts/store/task-world.ts';
import { same } from '../store/check.ts';
import type { Command } from './commands.ts';
import { isReady, LEASE_MS, Model, type ModelTask, OWNERS } from './model.ts';

const PLACE = 'here';
const workerOf = (id: string) => ({ id, process: { pid: 1, started: '1', boot: 'boot', namespace: 'n' } });

/** A store and its model. Every command goes to both, and after each they must agree. */
export class World {
  readonly #store: Store;
  readonly #clock: { time: number };
  readonly #note: (line: string) => void;
  readonly #model = new Model();
  #plans = 0;

  constructor(store: Store, clock: { time: number }, note: (line: string) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#note = note;
  }

  async run(command: Command): Promise<void> {
    this.#clock.time += 1;
    await this.#do(command);
    await this.#compare();
  }

  async #do(command: Command): Promise<void> {
    const { tasks } = this.#model;
    switch (command.kind) {
      case 'add':
        return this.#add(command);
      case 'claim':
        return this.#claim(command);
      case 'pass':
        this.#clock.time += command.ms;
        return;
      case 'forget':
        await this.#store.tasks.forgetHolder(command.worker);
        for (const task of tasks) if (task.worker === command.worker) this.#model.giveBack(task);
        return;
    }
    const task = tasks[command.task % Math.max(1, tasks.length)];
    if (task !== undefined) await this.#about(task, command);
  }

  async #add({ owner, parallel, tasks }: Extract<Command, { kind: 'add' }>): Promise<void> {
    this.#plans += 1;
    const plan = `plan ${this.#plans}`;
    const made: ModelTask[] = [];
    for (const [i, { milestone, after }] of tasks.entries()) {
      const first = made.slice(Math.max(0, i - after), i);
      const fixed = { id: `${plan}.${i}`, owner, plan, parallel, milestone, after: first };
      const fresh = { epoch: 0, worker: null, expires: 0, begun: false, cancel: false, events: 1 };
      made.push({ ...fixed, ...fresh, state: first.length > 0 ? 'waiting' : 'queued' });
    }
    const asked = made.map(({ id, milestone, after }) => newTask({ id, milestone, after: after.map((one) => one.id) }));
    await this.#store.tasks.add(owner, { plan, place: PLACE, parallel, tasks: asked });
    this.#model.tasks.push(...made);
  }

  async #claim({ worker, limit, only: at }: Extract<Command, { kind: 'claim' }>): Promise<void> {
    const { tasks } = this.#model;
    const only = at === null ? null : (tasks[at % Math.max(1, tasks.length)]?.id ?? 'none');
    const request = { worker: workerOf(worker), place: PLACE, leaseMs: LEASE_MS, limit };
    const claim = await this.#store.tasks.claim({ ...request, ...(only !== null && { only: [only] }) });
    const expected = this.#model.claim(worker, limit, only, this.#clock.time);
    this.#note(`${worker} takes up ${claim?.task.id ?? 'nothing'}`);
    same(
      'what is taken up',
      claim && [claim.task.id, claim.fence.epoch, claim.task.cancelRequested],
      expected && [expected.id, expected.epoch, expected.cancel],
    );
  }

  async #about(task: ModelTask, command: Extract<Command, { task: number }>): Promise<void> {
    const { tasks: store } = this.#store;
    const fence = { task: task.id, owner: task.owner, epoch: task.epoch };
    this.#note(`${command.kind} ${task.id}, which is ${task.state}`);
    switch (command.kind) {
      case 'end':
        return this.#end(task, fence, command.state);
      case 'begin': {
        const { progress } = (await store.find(task.owner, task.id)) ?? {};
        const begun = progress && { ...progress, conversation: 'c' };
        const done = begun && (await this.#committed(fence, { progress: begun, events: [] }));
        same('whether it may write', done, task.state === 'running');
        if (done) task.begun = true;
        return;
      }
      case 'release':
        await store.release(fence);
        if (task.state === 'running') this.#model.giveBack(task);
        return;
      case 'renew': {
        const lost = await store.renew([fence], LEASE_MS);
        same('whether the lease is lost', lost.length, task.state === 'running' ? 0 : 1);
        task.expires = this.#clock.time + LEASE_MS;
        return;
      }
      case 'cancel':
        await store.requestCancel(task.owner, task.id, 'x');
        this.#model.cancel(task);
        return;
      case 'retry': {
        const retried = await done(store.retry(task.owner, task.id, { by: 'x', say: null }), 'conflict');
        same('whether it is tried again', retried, this.#model.retry(task));
      }
    }
  }

  async #end(task: ModelTask, fence: TaskFence, state: NonNullable<TaskChange['state']>): Promise<void> {
    const { progress } = (await this.#store.tasks.find(task.owner, task.id)) ?? {};
    const decision = { decision: 'done', code: 'no_gate', reason: 'x' } as const;
    const payload = { ...decision, round: 1, iteration: 1, state: state as TaskState };
    const events = state === 'cancelled' ? [] : [{ kind: 'task.decided', payload } as const];
    const ended = progress && (await this.#committed(fence, { progress, state, events }));
    same('whether it may end', ended, task.state === 'running');
    if (ended) this.#model.end(task, state);
  }

  #committed(fence: TaskFence, change: TaskChange): Promise<boolean> {
    return done(this.#store.tasks.commit(fence, change), 'lease_lost');
  }

  /** Compares what can be read with the model, and checks what must always hold. */
  async #compare(): Promise<void> {
    for (const owner of OWNERS) {
      const own = this.#model.tasks.filter((task) => task.owner === owner);
      const found = (await this.#store.tasks.list(owner, {}, { limit: 1_000 })).toReversed();
      const shown = found.map(({ id, state, cancelRequested }) => [id, state, cancelRequested]);
      same(
        `the tasks of ${owner}`,
        shown,
        own.map(({ id, state, cancel }) => [id, state, cancel]),
      );
      const events = await this.#store.tasks.events(owner, { after: 0, limit: 1_000 });
      same(
        `the numbers of ${owner}`,
        events.map(({ seq }) => seq),
        Array.from({ length: own.reduce((sum, task) => sum + task.events, 0) }, (_, i) => i + 1),
      );
    }
    for (const task of this.#model.tasks) {
      if (task.state === 'waiting') same(`${task.id} has nothing to wait for`, isReady(task), false);
      if (task.state === 'queued' || task.state === 'running') same(`${task.id} came too early`, isReady(task), true);
    }
  }
}

/** False: it was refused with this code. */
async function done(verb: Promise<unknown>, code: string): Promise<boolean> {
  try {
    await verb;
    return true;
  } catch (error) {
    if ((error as { code?: string }).code !== code) throw error;
    return false;
  }
}
