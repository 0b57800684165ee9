import { Memory, randomId } from './memory.js';

/** @import { FromProgram, ToProgram } from '../protocol.ts' */

/** One session: its id, its memory, and what it refuses. */
export class Session {
  /** @type {string | null} */
  id = null;
  /** The id was chosen and not reported yet. */
  unnamed = false;
  /** The outcomes of prompts, so that a prompt that is sent twice runs once. */
  outcomes = new Map();
  #request;
  #lockedUntil = 0;

  /** @param {Extract<ToProgram, { type: 'open' }>} request */
  constructor(request) {
    this.#request = request;
    this.options = request.options;
    this.system = request.system;
    this.noTools = request.noTools && request.options.noTools;
    this.memory = new Memory(request.dir, request.options.memory === 'disk');
  }

  /** @returns {Extract<FromProgram, { type: 'opened' | 'refused' }>} */
  open() {
    return this.#request.how === 'new' ? this.#begin() : this.#resume(this.#request.id ?? '');
  }

  /** @returns {Extract<FromProgram, { type: 'opened' | 'refused' }>} */
  #begin() {
    const { ids, nameLate, refuseUsedIds } = this.options;
    const given = this.#request.id;
    if (ids !== 'assigned' && given !== null) return refused('refused', 'this agent issues its session ids itself');
    if (ids === 'assigned' && given === null) return refused('refused', 'this agent needs an id for a new session');
    if (given !== null && this.memory.exists(given)) {
      if (refuseUsedIds) return refused('in_use', `Session ID ${given} is already in use.`);
      this.memory.erase(given);
    }
    this.id = given ?? randomId();
    this.unnamed = nameLate;
    this.memory.begin(this.id);
    return { type: 'opened', id: this.unnamed ? null : this.id };
  }

  /**
   * @param {string} id
   * @returns {Extract<FromProgram, { type: 'opened' | 'refused' }>}
   */
  #resume(id) {
    const { resume } = this.options;
    if (resume === 'none') return refused('refused', 'this agent cannot resume a session');
    if (resume === 'real' && !this.memory.exists(id)) return refused('not_found', `No session found with id ${id}`);
    if (this.memory.lockedUntil(id) > Date.now()) return refused('locked', `Session ${id} is in use elsewhere`);
    this.id = id;
    if (resume === 'real') this.memory.load(id);
    else this.memory.loadHollow(id);
    return { type: 'opened', id };
  }

  /** Every prompt but the first moves a rotating session under a new id. Returns the new one; null: it stays. */
  rotate() {
    if (this.options.ids !== 'rotating' || this.memory.stored === 0) return null;
    this.id = randomId();
    if (this.options.hollowRotation) this.memory.begin(this.id);
    else this.memory.moveTo(this.id);
    return this.id;
  }

  get locked() {
    if (this.options.lockMs === 0 || this.id === null) return false;
    return Math.max(this.#lockedUntil, this.memory.lockedUntil(this.id)) > Date.now();
  }

  lock() {
    if (this.options.lockMs === 0 || this.id === null) return;
    this.#lockedUntil = Date.now() + this.options.lockMs;
    this.memory.lock(this.id, this.#lockedUntil);
  }
}

/**
 * @param {import('../protocol.ts').RefusalReason} reason
 * @param {string} message
 * @returns {Extract<FromProgram, { type: 'refused' }>}
 */
function refused(reason, message) {
  return { type: 'refused', reason, message };
}
