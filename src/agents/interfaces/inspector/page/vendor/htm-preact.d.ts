// The part of htm-preact.js that the page uses.
export type Ref<T> = { current: T };
export function html(strings: TemplateStringsArray, ...values: any[]): any;
export function render(tree: any, parent: Element): void;
export function useState<T>(initial: T | (() => T)): [T, (next: T | ((last: T) => T)) => void];
export function useReducer<S, A>(reducer: (state: S, action: A) => S, initial: S): [S, (action: A) => void];
export function useEffect(effect: () => void | (() => void), inputs?: any[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: any[]): void;
export function useRef<T>(initial: T): Ref<T>;
export function useRef<T>(initial: null): Ref<T | any>;
export function useMemo<T>(make: () => T, inputs: any[]): T;
export function useErrorBoundary(seen?: (error: any) => void): [any, () => void];
