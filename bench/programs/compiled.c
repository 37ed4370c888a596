/* SPDX-License-Identifier: Apache-2.0 */
/* What `husk bench cpu` lets a compiler compile: a small program of the usual kind,
 * without headers, so that it needs nothing but itself. It is never run. */
typedef unsigned long size;

struct node {
    struct node *left;
    struct node *right;
    int key;
    int height;
    char name[24];
};

struct pool {
    struct node nodes[256];
    size used;
};

static struct pool pool;

enum token { END, NUMBER, NAME, PLUS, MINUS, TIMES, OVER, OPEN, CLOSE };

struct reader {
    const char *at;
    enum token token;
    long value;
    char name[24];
    int failures;
};

static int larger(int left, int right)
{
    return left > right ? left : right;
}

static int height_of(const struct node *node)
{
    return node ? node->height : 0;
}

static void measure(struct node *node)
{
    node->height = 1 + larger(height_of(node->left), height_of(node->right));
}

static int compare(const char *left, const char *right)
{
    while (*left && *left == *right) {
        left++;
        right++;
    }
    return (unsigned char)*left - (unsigned char)*right;
}

static void copy(char *to, const char *from, size room)
{
    size i = 0;

    for (; i + 1 < room && from[i]; i++)
        to[i] = from[i];
    to[i] = 0;
}

static struct node *rotate_right(struct node *node)
{
    struct node *top = node->left;

    node->left = top->right;
    top->right = node;
    measure(node);
    measure(top);
    return top;
}

static struct node *rotate_left(struct node *node)
{
    struct node *top = node->right;

    node->right = top->left;
    top->left = node;
    measure(node);
    measure(top);
    return top;
}

static struct node *balance(struct node *node)
{
    int difference = height_of(node->left) - height_of(node->right);

    measure(node);
    if (difference > 1) {
        if (height_of(node->left->left) < height_of(node->left->right))
            node->left = rotate_left(node->left);
        return rotate_right(node);
    }
    if (difference < -1) {
        if (height_of(node->right->right) < height_of(node->right->left))
            node->right = rotate_right(node->right);
        return rotate_left(node);
    }
    return node;
}

static struct node *make_node(const char *name, int key)
{
    struct node *node;

    if (pool.used == sizeof(pool.nodes) / sizeof(pool.nodes[0]))
        return 0;
    node = &pool.nodes[pool.used++];
    copy(node->name, name, sizeof(node->name));
    node->key = key;
    node->height = 1;
    node->left = node->right = 0;
    return node;
}

struct node *insert(struct node *root, const char *name, int key)
{
    int order;

    if (!root)
        return make_node(name, key);
    order = compare(name, root->name);
    if (order == 0)
        root->key = key;
    else if (order < 0)
        root->left = insert(root->left, name, key);
    else
        root->right = insert(root->right, name, key);
    return balance(root);
}

const struct node *search(const struct node *root, const char *name)
{
    while (root) {
        int order = compare(name, root->name);

        if (order == 0)
            break;
        root = order < 0 ? root->left : root->right;
    }
    return root;
}

static int is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

static int is_letter(char letter)
{
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           letter == '_';
}

static void read_number(struct reader *reader)
{
    reader->value = 0;
    while (is_digit(*reader->at))
        reader->value = reader->value * 10 + (*reader->at++ - '0');
    reader->token = NUMBER;
}

static void read_name(struct reader *reader)
{
    size used = 0;

    while (is_letter(*reader->at) || is_digit(*reader->at)) {
        if (used + 1 < sizeof(reader->name))
            reader->name[used++] = *reader->at;
        reader->at++;
    }
    reader->name[used] = 0;
    reader->token = NAME;
}

static void advance(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n')
        reader->at++;
    if (is_digit(*reader->at)) {
        read_number(reader);
        return;
    }
    if (is_letter(*reader->at)) {
        read_name(reader);
        return;
    }
    switch (*reader->at) {
    case 0:
        reader->token = END;
        return;
    case '+':
        reader->token = PLUS;
        break;
    case '-':
        reader->token = MINUS;
        break;
    case '*':
        reader->token = TIMES;
        break;
    case '/':
        reader->token = OVER;
        break;
    case '(':
        reader->token = OPEN;
        break;
    case ')':
        reader->token = CLOSE;
        break;
    default:
        reader->failures++;
        break;
    }
    reader->at++;
}

static long sum(struct reader *reader, const struct node *names);

static long factor(struct reader *reader, const struct node *names)
{
    long value = 0;

    if (reader->token == NUMBER) {
        value = reader->value;
        advance(reader);
    } else if (reader->token == NAME) {
        const struct node *node = search(names, reader->name);

        if (node)
            value = node->key;
        else
            reader->failures++;
        advance(reader);
    } else if (reader->token == MINUS) {
        advance(reader);
        value = -factor(reader, names);
    } else if (reader->token == OPEN) {
        advance(reader);
        value = sum(reader, names);
        if (reader->token != CLOSE)
            reader->failures++;
        advance(reader);
    } else {
        reader->failures++;
        advance(reader);
    }
    return value;
}

static long product(struct reader *reader, const struct node *names)
{
    long value = factor(reader, names);

    while (reader->token == TIMES || reader->token == OVER) {
        enum token operation = reader->token;
        long right;

        advance(reader);
        right = factor(reader, names);
        if (operation == TIMES)
            value *= right;
        else if (right != 0)
            value /= right;
        else
            reader->failures++;
    }
    return value;
}

static long sum(struct reader *reader, const struct node *names)
{
    long value = product(reader, names);

    while (reader->token == PLUS || reader->token == MINUS) {
        enum token operation = reader->token;
        long right;

        advance(reader);
        right = product(reader, names);
        value = operation == PLUS ? value + right : value - right;
    }
    return value;
}

long evaluate(const char *text, const struct node *names, int *failures)
{
    struct reader reader = {text, END, 0, "", 0};
    long value;

    advance(&reader);
    value = sum(&reader, names);
    if (reader.token != END)
        reader.failures++;
    *failures = reader.failures;
    return value;
}

void multiply_matrices(double *product_of, const double *left, const double *right,
                       int side)
{
    for (int row = 0; row < side; row++) {
        for (int column = 0; column < side; column++) {
            double total = 0.0;

            for (int i = 0; i < side; i++)
                total += left[row * side + i] * right[i * side + column];
            product_of[row * side + column] = total;
        }
    }
}
