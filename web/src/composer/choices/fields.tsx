import { type ReactNode, useId } from 'react';
import type { ConfigOption } from '../../data/conversation/announced.ts';

export const INPUT = 'h-8 w-full min-w-0 rounded-md border border-control bg-raised px-2 pointer-coarse:h-11';

export function Row({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is what is put into it
    <label className="grid grid-cols-[9rem_1fr] items-center gap-2">
      <span className="text-muted">{label}</span>
      {children}
    </label>
  );
}

interface NamedFieldProps {
  readonly label: string;
  readonly value: string | undefined;
  /** What the agent uses now; null: it has not announced it. */
  readonly now: string | null;
  readonly values: readonly { readonly id: string; readonly name: string }[];
  onValue(value: string | undefined): void;
}

/** A name that the agent has announced, or any other: some agents take names that they do not announce. */
export function NamedField({ label, value, now, values, onValue }: NamedFieldProps) {
  const list = useId();
  return (
    <Row label={label}>
      <input
        className={INPUT}
        list={list}
        value={value ?? ''}
        placeholder={now ?? 'agent’s default'}
        autoComplete="off"
        onChange={({ target }) => onValue(target.value === '' ? undefined : target.value)}
      />
      <datalist id={list}>
        {values.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </datalist>
    </Row>
  );
}

interface ConfigFieldProps {
  readonly option: ConfigOption;
  readonly value: string | boolean | undefined;
  onValue(value: string | boolean | undefined): void;
}

export function ConfigField({ option: { name, current, values }, value, onValue }: ConfigFieldProps) {
  const all = values ?? [
    { id: 'true', name: 'on' },
    { id: 'false', name: 'off' },
  ];
  const choose = (id: string) => onValue(id === '' ? undefined : values === null ? id === 'true' : id);
  return (
    <Row label={name}>
      <select
        className={INPUT}
        value={value === undefined ? '' : String(value)}
        onChange={({ target }) => choose(target.value)}
      >
        <option value="">{current === null ? 'agent’s default' : `current: ${current}`}</option>
        {all.map((one) => (
          <option key={one.id} value={one.id}>
            {one.name}
          </option>
        ))}
      </select>
    </Row>
  );
}

interface NumberFieldProps {
  readonly label: string;
  readonly value: number | null | undefined;
  onValue(value: number | undefined): void;
}

export function NumberField({ label, value, onValue }: NumberFieldProps) {
  return (
    <Row label={label}>
      <input
        className={`${INPUT} tabular-nums`}
        type="number"
        min={1}
        inputMode="numeric"
        value={value ?? ''}
        placeholder="–"
        onChange={({ target }) => onValue(target.valueAsNumber > 0 ? Math.round(target.valueAsNumber) : undefined)}
      />
    </Row>
  );
}
