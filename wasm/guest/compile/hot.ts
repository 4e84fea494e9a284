export const HOT = "";
