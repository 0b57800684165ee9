import type { Store } from '../../ports/store.ts';
import { receiptStore, restores, summary, told, usageDays } from './verbs/accounts.ts';
import { endErasure, unfinishedErasures } from './verbs/erase.ts';
import { keyStore } from './verbs/keys.ts';
import {
  arrange,
  forgetWorker,
  moveConversation,
  placeStore,
  setChoices,
  setLimitPerDay,
  setTitle,
} from './verbs/places.ts';
import { answer, requestCancel, requeue, setDelivered } from './verbs/queue.ts';
import * as read from './verbs/reading.ts';
import { sandboxStore } from './verbs/sandboxes.ts';
import { nextTurn } from './writing/claim.ts';
import type { LedgerAccess } from './writing/ledger.ts';

/** The verbs of a store that are the same in all stores, from verbs in steps. */
export function sharedVerbs(access: LedgerAccess) {
  return {
    ...keyStore(access),
    ...placeStore(access),
    ...receiptStore(access),
    ...sandboxStore(access),
    ...changes(access),
    ...reads(access),
    // Called like this because it is loaded when it is first used (scripts/bundle.js).
    nextTurn: (...args) => access.lookingAt(nextTurn)(...args),
  } satisfies Partial<Store>;
}

function changes({ writing, changing }: LedgerAccess) {
  return {
    setTitle: changing(setTitle),
    arrange: changing(arrange),
    setLimitPerDay: changing(setLimitPerDay),
    setChoices: changing(setChoices),
    moveConversation: changing(moveConversation),
    requestCancel: changing(requestCancel),
    requeue: changing(requeue),
    answer: changing(answer),
    setDelivered: writing(setDelivered),
    endErasure: writing(endErasure),
    forgetWorker: changing(forgetWorker),
  } satisfies Partial<Store>;
}

function reads({ reading, looking, lookingAt, paging }: LedgerAccess) {
  return {
    agentFor: looking(read.agentFor),
    queued: paging('queued', read.queued),
    findTurn: looking(read.findTurn),
    findRequest: looking(read.findRequest),
    pending: paging('pending', read.pending),
    told: reading(told),
    outline: paging('outline', read.outline),
    turns: reading(read.turns),
    findPermission: reading(read.findPermission),
    openPermissions: looking(read.openPermissions),
    turnEvents: reading(read.turnEvents),
    recordsBefore: paging('recordsBefore', read.recordsBefore),
    recordsAfter: paging('recordsAfter', read.recordsAfter),
    countRecordsAfter: reading(read.countRecordsAfter),
    unknownParts: looking(read.unknownParts),
    summary: lookingAt(summary),
    usage: paging('usageDays', usageDays),
    sessionIsElsewhere: looking(read.sessionIsElsewhere),
    findSessions: looking(read.findSessions),
    transcript: reading(read.transcript),
    unfinishedErasures: reading(unfinishedErasures),
    restores: paging('restores', restores),
  } satisfies Partial<Store>;
}
