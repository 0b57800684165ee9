import { clsx } from 'clsx';
import type { ComponentProps, ReactNode } from 'react';
import { tip } from './tip.tsx';

type Look = 'plain' | 'quiet' | 'primary' | 'danger';

const LOOKS: Readonly<Record<Look, string>> = {
  plain: 'border border-line-strong bg-raised text-ink hover:bg-hover',
  quiet: 'text-muted hover:bg-hover hover:text-ink',
  primary: 'border border-ink bg-ink font-semibold text-on-ink hover:opacity-90',
  danger: 'border border-line-strong bg-raised text-broken hover:bg-broken-soft',
};

/** On a touch screen every target is at least 44 px high. */
const SHAPE =
  'inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md select-none disabled:opacity-45 pointer-coarse:min-h-11 pointer-coarse:min-w-11';

interface ButtonProps extends ComponentProps<'button'> {
  readonly look?: Look;
  readonly small?: boolean;
}

export function Button({ look = 'plain', small = false, className, type = 'button', ...rest }: ButtonProps) {
  const size = small ? 'min-h-7 px-2.5 text-ui' : 'min-h-8 px-3 text-ui';
  return <button type={type} className={clsx(SHAPE, size, LOOKS[look], className)} {...rest} />;
}

interface IconButtonProps extends Omit<ButtonProps, 'children'> {
  /** What it does: its accessible name, and its tip. */
  readonly label: string;
  readonly keys?: string;
  readonly children: ReactNode;
}

export function IconButton({ label, keys, look = 'quiet', small = false, className, ...rest }: IconButtonProps) {
  const size = small ? 'size-7' : 'size-7.5';
  return (
    <button
      type="button"
      aria-label={label}
      className={clsx(SHAPE, size, LOOKS[look], className)}
      {...tip(label, keys)}
      {...rest}
    />
  );
}
