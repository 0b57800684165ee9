import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { isDay } from '../../core/usage-page.ts';

/** For options that take a whole number. */
export function wholeNumber(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(value);
}

/** Numbers of turns count from one. */
export function positiveNumber(value: string): number {
  const number = wholeNumber(value);
  if (number < 1) throw new InvalidArgumentError('It must be 1 or more.');
  return number;
}

/** Of TCP; 0 is any that is free. */
export function portNumber(value: string): number {
  const number = wholeNumber(value);
  if (number > 65_535) throw new InvalidArgumentError('It must be 65535 or less.');
  return number;
}

/** A day as usage has it: UTC, year first. */
export function day(value: string): string {
  if (!isDay(value)) throw new InvalidArgumentError('It must be a day like 2026-01-31.');
  return value;
}

/** As a whole path: whoever does the work may be somewhere else. */
export function directory(path: string): string {
  return resolve(path);
}
