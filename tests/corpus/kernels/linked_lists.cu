// linked_lists.cu: every thread builds a list of its numbers on the heap, walks it to NULL, and gives it back.
struct Node {
  int value;
  Node *next;
};

__global__ void linked_lists(const int *in, int *out, int length, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Node *head = NULL;
  for (int k = 0; k < length; ++k) {
    Node *node = (Node *)malloc(sizeof(Node));
    node->value = in[i * length + k];
    node->next = head;
    head = node;
  }
  int result = 0;
  while (head != NULL) {
    Node *node = head;
    result = 3 * result + node->value;
    head = node->next;
    free(node);
  }
  out[i] = result;
}
