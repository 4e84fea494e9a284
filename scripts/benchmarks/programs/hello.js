console.log("hello", 6 * 7);
