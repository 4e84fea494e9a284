const answer: number = 6 * 7;
console.log("hello", answer);
